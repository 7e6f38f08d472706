package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/control"
)

// messages come in one by one.
type messages = <-chan control.Message

// listener is where a command hears what processes say of themselves.
type listener struct {
	app       *app
	nats      string
	addresses []string
	cluster   string

	loud  bool        // say when a connection is lost, and when it is back
	later atomic.Bool // messages of another version were left out, and said so
}

// againAfter is the pause before an ops port that went away is asked again.
const againAfter = time.Second

func (l *listener) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.nats, "nats", "", "NATS server of the cluster, nats://host:port (default: WHIPPET_NATS_URL)")
	f.StringSliceVar(&l.addresses, "address", nil, "host:port of the ops port of a process, several with commas (default 127.0.0.1:9190)")
	f.StringVar(&l.cluster, "cluster", "", "only the cluster of that name")
}

// open begins to listen. Until ctx is done messages come in, whatever becomes of the connections.
func (l *listener) open(ctx context.Context) (messages, error) {
	url := l.nats
	if url == "" && len(l.addresses) == 0 {
		url = l.app.Getenv("WHIPPET_NATS_URL")
	}
	heard := make(chan control.Message)
	if url != "" {
		return heard, l.overNATS(ctx, url, heard)
	}
	if len(l.addresses) == 0 {
		l.addresses = []string{"127.0.0.1:9190"}
	}
	return heard, l.overOps(ctx, heard)
}

func (l *listener) overNATS(ctx context.Context, url string, heard chan<- control.Message) error {
	o := control.NATSOptions{
		URL: url, User: l.app.Getenv("WHIPPET_NATS_USER"), CAFile: l.app.Getenv("WHIPPET_NATS_CA_FILE"), Name: "whippet " + l.app.Version,
	}
	if l.loud {
		o.Log = hclog.New(&hclog.LoggerOptions{Name: "whippet", Output: l.app.Err, DisableTime: true})
	}
	var err error
	if o.Password, err = l.secret("WHIPPET_NATS_PASSWORD"); err != nil {
		return err
	}
	if o.Seed, err = l.secret("WHIPPET_NATS_NKEY"); err != nil {
		return err
	}
	bus, err := control.DialNATS(o)
	if err != nil {
		return connectError{err}
	}
	sub, err := bus.Subscribe(control.All(l.cluster))
	if err != nil {
		bus.Close()
		return connectError{err}
	}
	go func() {
		defer bus.Close()
		for {
			select {
			case d := <-sub.C:
				l.hand(ctx, d, heard)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// secret reads a variable, or the file that NAME_FILE names.
func (l *listener) secret(name string) (string, error) {
	file := l.app.Getenv(name + "_FILE")
	if value := l.app.Getenv(name); value != "" || file == "" {
		return value, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usageError{err}
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// overOps listens at every address; one that can not be reached is an error, one that goes away later is not.
func (l *listener) overOps(ctx context.Context, heard chan<- control.Message) error {
	begun := make(chan error, len(l.addresses))
	for _, address := range l.addresses {
		go func() {
			var first sync.Once
			for ctx.Err() == nil {
				up := false
				err := control.Listen(ctx, address, func() {
					up = true
					first.Do(func() { begun <- nil })
				}, func(d control.Delivery) { l.hand(ctx, d, heard) })
				first.Do(func() { begun <- err })
				if up && ctx.Err() == nil {
					l.note(err)
				}
				select {
				case <-time.After(againAfter):
				case <-ctx.Done():
				}
			}
		}()
	}
	for range l.addresses {
		if err := <-begun; err != nil {
			return connectError{err}
		}
	}
	return nil
}

// note says that a connection is lost.
func (l *listener) note(err error) {
	if l.loud {
		fmt.Fprintln(l.app.Err, "whippet:", err)
	}
}

func (l *listener) hand(ctx context.Context, d control.Delivery, heard chan<- control.Message) {
	m, err := control.Decode(d.Payload)
	if err != nil {
		if !l.later.Swap(true) {
			fmt.Fprintln(l.app.Err, "whippet: a message is left out:", err)
		}
		return
	}
	if l.cluster != "" && m.Source.Cluster != l.cluster {
		return
	}
	select {
	case heard <- m:
	case <-ctx.Done():
	}
}
