package floor

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// quorum is the least that three processes can do: the first one sends every batch to the other two and
// answers when it and one of them have it. Nothing is repaired and nobody is replaced.
type quorum struct {
	mu    sync.Mutex
	sent  uint64 // batches handed to the backups
	acked uint64 // batches one backup has
	more  *sync.Cond
	fail  error

	backups []*backup
}

// backup is the way to one of the other processes.
type backup struct {
	conn net.Conn

	mu      sync.Mutex
	waiting *sync.Cond
	queue   net.Buffers
}

// dialQuorum connects to the backups.
func dialQuorum(addresses []string) (*quorum, error) {
	q := &quorum{}
	q.more = sync.NewCond(&q.mu)
	for _, a := range addresses {
		c, err := net.Dial("tcp", a)
		if err != nil {
			return nil, err
		}
		b := &backup{conn: c}
		b.waiting = sync.NewCond(&b.mu)
		q.backups = append(q.backups, b)
	}
	for _, b := range q.backups {
		go b.write(q)
		go b.read(q)
	}
	return q, nil
}

// send hands a copy of the batch to every backup and returns its number.
func (q *quorum) send(batch []byte) uint64 {
	frame := make([]byte, 4, 4+len(batch))
	binary.LittleEndian.PutUint32(frame, uint32(len(batch)))
	frame = append(frame, batch...)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent++
	for _, b := range q.backups {
		b.mu.Lock()
		b.queue = append(b.queue, frame)
		b.mu.Unlock()
		b.waiting.Signal()
	}
	return q.sent
}

// wait returns when one backup has the batch of that number.
func (q *quorum) wait(number uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.acked < number && q.fail == nil {
		q.more.Wait()
	}
	return q.fail
}

func (q *quorum) failed(err error) {
	q.mu.Lock()
	q.fail = err
	q.mu.Unlock()
	q.more.Broadcast()
}

func (b *backup) write(q *quorum) {
	var out net.Buffers
	for {
		b.mu.Lock()
		for len(b.queue) == 0 {
			b.waiting.Wait()
		}
		out, b.queue = b.queue, nil
		b.mu.Unlock()
		if _, err := out.WriteTo(b.conn); err != nil {
			q.failed(err)
			return
		}
	}
}

// read takes acknowledgements: the number of batches the backup has.
func (b *backup) read(q *quorum) {
	in := bufio.NewReader(b.conn)
	var number [8]byte
	for {
		if _, err := io.ReadFull(in, number[:]); err != nil {
			q.failed(err)
			return
		}
		q.mu.Lock()
		q.acked = max(q.acked, binary.LittleEndian.Uint64(number[:]))
		q.mu.Unlock()
		q.more.Broadcast()
	}
}

// ServeBackup stores what the first process of a quorum sends, in one file in dir, until l closes.
func ServeBackup(l net.Listener, dir string, mode Sync) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = c.Close() }()
			_ = receive(c, dir, mode) // the first process sees the connection end
		}()
	}
}

func receive(c net.Conn, dir string, mode Sync) error {
	f, err := createFile(filepath.Join(dir, "backup.log"))
	if err != nil {
		return err
	}
	defer func() { _ = f.f.Close() }()
	written := make(chan uint64, 1<<16)
	defer close(written)
	go acknowledge(c, f, mode, written)
	in := bufio.NewReaderSize(c, 1<<20)
	var batch []byte
	for number := uint64(1); ; number++ {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return err
		}
		n := int(binary.LittleEndian.Uint32(size[:]))
		if cap(batch) < n {
			batch = make([]byte, n)
		}
		batch = batch[:n]
		if _, err := io.ReadFull(in, batch); err != nil {
			return err
		}
		if _, err := f.append(batch, SyncNone); err != nil {
			return err
		}
		written <- number
	}
}

// acknowledge answers for everything written so far at once, synced if the mode asks for it.
func acknowledge(c net.Conn, f *file, mode Sync, written <-chan uint64) {
	for number := range written {
		for more := true; more && mode != SyncEach && mode != SyncWritten; {
			select {
			case next, ok := <-written:
				if more = ok; ok {
					number = next
				}
			default:
				more = false
			}
		}
		if mode != SyncNone && f.groupSync() != nil {
			return
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], number)
		if _, err := c.Write(b[:]); err != nil {
			return
		}
	}
}
