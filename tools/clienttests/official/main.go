// The program official sends with the official Go client, as it is, and writes down what becomes of each message.
// Reconnecting and repeating are the client's own; what it reports as failed is not sent again.
//
// It is a module of its own, because no published version of the client speaks this protocol: whoever builds it
// replaces it in a go.work by a directory with the client's source.
//
// Lines of output say what is about to be sent, "sent FIRST COUNT -", and what it came to: "acked FIRST COUNT PARTITION
// OFFSET", or "open FIRST COUNT ERROR" when nobody knows. Messages of producer p have the ids p<<32 | n and say so in their payload. It ends with its input.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apache/iggy/foreign/go/client"
	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

func main() {
	addresses := flag.String("addresses", "127.0.0.1:8090", "host:port of each producer, separated by commas")
	stream := flag.String("stream", "official", "to send to")
	topic := flag.String("topic", "t", "to send to")
	partitions := flag.Uint("partitions", 3, "of the topic")
	pause := flag.Duration("pause", 2*time.Millisecond, "between two sends of a producer")
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	var all sync.WaitGroup
	for i, address := range strings.Split(*addresses, ",") {
		p := &producer{number: uint64(i), partitions: uint32(*partitions), pause: *pause}
		if err := p.connect(ctx, address, *stream, *topic); err != nil {
			log.Fatal(err)
		}
		all.Add(1)
		go func() { defer all.Done(); p.run(ctx) }()
	}
	all.Wait()
}

// producer is one client.
type producer struct {
	number        uint64
	partitions    uint32
	pause         time.Duration
	client        iggcon.Client
	stream, topic iggcon.Identifier
	sent          uint64
}

func (p *producer) connect(ctx context.Context, address, stream, topic string) (err error) {
	p.client, err = client.NewIggyClient(client.WithTcp(
		tcp.WithServerAddress(address), tcp.WithAutoLogin(tcp.NewUsernamePasswordCredentials("iggy", "iggy"))))
	if err != nil {
		return err
	}
	if p.stream, err = iggcon.NewIdentifier(stream); err != nil {
		return err
	}
	if p.topic, err = iggcon.NewIdentifier(topic); err != nil {
		return err
	}
	return p.client.Connect(ctx)
}

func (p *producer) run(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(p.pause) {
		p.send(ctx)
	}
	_ = p.client.Close() // everything was said
}

var output sync.Mutex

func say(format string, args ...any) {
	output.Lock()
	defer output.Unlock()
	fmt.Printf(format, args...)
}

// send sends the next one to five messages.
func (p *producer) send(ctx context.Context) {
	first, count := p.sent, 1+p.sent%5
	p.sent += count
	partition := uint32(first) % p.partitions
	batch := make([]iggcon.IggyMessage, count)
	for i := range batch {
		id := p.number<<32 | (first + uint64(i))
		var raw [16]byte
		binary.LittleEndian.PutUint64(raw[:], id+1) // an id of 0 asks the server for one
		m, err := iggcon.NewIggyMessage(fmt.Appendf(nil, "%d", id), iggcon.WithID(raw))
		if err != nil {
			log.Fatal(err)
		}
		batch[i] = m
	}
	say("sent %d %d -\n", p.number<<32|first, count)
	answer, err := p.client.SendMessages(ctx, p.stream, p.topic, iggcon.PartitionId(partition), batch)
	switch {
	case err != nil:
		say("open %d %d %v\n", p.number<<32|first, count, err)
	case len(answer.Confirmations) != 1:
		log.Fatalf("%d confirmations of one batch", len(answer.Confirmations))
	default:
		c := answer.Confirmations[0]
		say("acked %d %d %d %d\n", p.number<<32|first, count, c.PartitionId, c.BaseOffset)
	}
}
