//go:build linux

package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// network joins the members of a cluster, each in a network namespace of its own, and this process. Every
// one of them has a tunnel device whose other end is here: packets between them pass through this process,
// which delays or loses them as it is told. So a network can be bad in one direction, between two members
// alone, and needs neither packet filters nor queueing disciplines of the kernel.
//
// Nodes are numbered: members in the order of the cluster, then this process.
type network struct {
	prefix  netip.Prefix
	devices []*os.File
	spaces  []*namespace

	mu     sync.Mutex
	random *rand.Rand
	ways   [][]way // from, to
	queues [][]chan packet
	lost   int
	passed int

	stop chan struct{}
	done sync.WaitGroup
}

// way is how packets get from one node to another.
type way struct {
	cut   bool
	delay time.Duration
	loss  float64 // share of the packets
}

type packet struct {
	due  time.Time
	data []byte
}

const (
	queueLength = 4096 // packets under way between two nodes; more are lost, as anywhere
	packetSize  = 2048 // above the MTU of a tunnel
)

// needNetwork skips a test where networks cannot be made.
func needNetwork(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no bad networks: the program ip (iproute2) is missing")
	}
	s := newNamespace()
	defer s.close()
	err := s.do(func() error {
		if s.err != nil {
			return s.err
		}
		f, err := tunnel("probe")
		if err == nil {
			_ = f.Close()
		}
		return err
	})
	if err != nil {
		t.Skipf("no bad networks: network namespaces and tunnels need root and /dev/net/tun: %v", err)
	}
}

// networks counts those of this process: two at a time have addresses of their own.
var networks atomic.Uint32

// newNetwork makes a network for so many members; it is gone when the test ends.
func newNetwork(t *testing.T, members int, seed uint64) *network {
	t.Helper()
	number := networks.Add(1)
	n := &network{
		prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, byte(18 + number%2), byte(os.Getpid()), 0}), 24), // RFC 2544: never a real network
		random: rand.New(rand.NewPCG(seed, 3)), stop: make(chan struct{}),
	}
	t.Cleanup(n.close)
	here := func(f func() error) error { return f() }
	for i := range members + 1 {
		do, name := here, fmt.Sprintf("wpt%d-%d", number, os.Getpid())
		if i < members {
			s := newNamespace()
			n.spaces = append(n.spaces, s)
			do, name = s.do, "tun0"
		}
		if err := do(func() error { return n.attach(name, n.host(i)) }); err != nil {
			t.Fatalf("network of node %d: %v", i, err)
		}
	}
	nodes := members + 1
	n.ways, n.queues = make([][]way, nodes), make([][]chan packet, nodes)
	for from := range nodes {
		n.ways[from], n.queues[from] = make([]way, nodes), make([]chan packet, nodes)
		for to := range nodes {
			n.queues[from][to] = make(chan packet, queueLength)
			n.done.Go(func() { n.carry(n.queues[from][to], n.devices[to]) })
		}
	}
	for from := range nodes {
		n.done.Go(func() { n.take(from) })
	}
	return n
}

// host is the address of a node.
func (n *network) host(node int) string {
	a := n.prefix.Addr().As4()
	a[3] = byte(node + 1)
	return netip.AddrFrom4(a).String()
}

// attach makes the tunnel of a node, where it is called.
func (n *network) attach(name, host string) error {
	f, err := tunnel(name)
	if err != nil {
		return err
	}
	n.devices = append(n.devices, f)
	for _, args := range []string{
		"link set lo up",
		fmt.Sprintf("addr add %s/%d dev %s", host, n.prefix.Bits(), name),
		fmt.Sprintf("link set %s up", name),
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}

// tunnel makes a tunnel for IP packets in the namespace of the calling thread.
func tunnel(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("tunnel %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// take reads what a node sends and puts it on its way.
func (n *network) take(from int) {
	for {
		data := make([]byte, packetSize)
		size, err := n.devices[from].Read(data)
		if err != nil {
			return
		}
		if data = data[:size]; size < 20 || data[0]>>4 != 4 {
			continue
		}
		to := int(data[19]) - 1
		if to < 0 || to >= len(n.ways) || binary.BigEndian.Uint16(data[16:]) != binary.BigEndian.Uint16(n.prefix.Addr().AsSlice()) {
			continue
		}
		n.mu.Lock()
		w := n.ways[from][to]
		if w.cut || w.loss > 0 && n.random.Float64() < w.loss {
			n.lost++
			n.mu.Unlock()
			continue
		}
		n.passed++
		n.mu.Unlock()
		select {
		case n.queues[from][to] <- packet{time.Now().Add(w.delay), data}:
		default:
		}
	}
}

// carry hands packets over when they are due.
func (n *network) carry(queue chan packet, to *os.File) {
	for {
		select {
		case p := <-queue:
			if wait := time.Until(p.due); wait > 0 {
				elapse(wait)
			}
			if _, err := to.Write(p.data); errors.Is(err, os.ErrClosed) {
				return
			}
		case <-n.stop:
			return
		}
	}
}

// set changes the ways from the nodes of one list to those of another.
func (n *network) set(w way, from, to []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range from {
		for _, b := range to {
			if a != b {
				n.ways[a][b] = w
			}
		}
	}
}

// heal makes every way a good one.
func (n *network) heal() {
	all := make([]int, len(n.ways))
	for i := range all {
		all[i] = i
	}
	n.set(way{}, all, all)
}

// counted is how many packets passed and how many were lost since the last time.
func (n *network) counted() (passed, lost int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	passed, lost = n.passed, n.lost
	n.passed, n.lost = 0, 0
	return passed, lost
}

func (n *network) close() {
	close(n.stop)
	for _, f := range n.devices {
		_ = f.Close()
	}
	n.done.Wait()
	for _, s := range n.spaces {
		s.close()
	}
}

// namespace is a thread in a network namespace of its own. The namespace lives as long as the thread and
// what it started.
type namespace struct {
	work chan func()
	err  error // why there is none
}

func newNamespace() *namespace {
	s := &namespace{work: make(chan func())}
	made := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		s.err = unix.Unshare(unix.CLONE_NEWNET)
		close(made)
		for f := range s.work {
			f()
		}
	}()
	<-made
	return s
}

// do runs f on the thread.
func (s *namespace) do(f func() error) error {
	if s.err != nil {
		return fmt.Errorf("network namespace: %w", s.err)
	}
	done := make(chan error)
	s.work <- func() { done <- f() }
	return <-done
}

func (s *namespace) close() { close(s.work) }
