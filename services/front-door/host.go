package frontdoor

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// hostFigures is what GetStats reports of the process and its machine.
type hostFigures struct {
	CPU, TotalCPU                        float32 // percent since the last reading; the first is 0
	Memory, TotalMemory, AvailableMemory uint64  // bytes
	RunTime, StartTime                   uint64  // µs
	ReadBytes, WrittenBytes              uint64  // file system traffic of the process
	Hostname, OS, OSVersion, Kernel      string
	Threads                              uint32
	FreeDisk, TotalDisk                  uint64 // bytes
}

// host reads the figures. What does not change is read once; the rest comes from /proc, and is 0
// where there is none.
type host struct {
	dir     string
	started time.Time
	fixed   hostFigures

	mu          sync.Mutex
	lastSample  time.Time
	lastProcess float64 // seconds
	lastBusy    float64 // jiffies
	lastAll     float64
}

func newHost(now time.Time, dir string) *host {
	h := &host{dir: dir, started: now}
	h.fixed.StartTime = uint64(now.UnixMicro())
	h.fixed.Hostname, _ = os.Hostname()
	h.fixed.OS, h.fixed.OSVersion = osRelease()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.fixed.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return h
}

// read fills f with the figures of this moment.
func (h *host) read(f *hostFigures) {
	*f = h.fixed
	f.RunTime = uint64(time.Since(h.started).Microseconds())
	f.Memory, f.Threads = processStatus()
	f.TotalMemory, f.AvailableMemory = machineMemory()
	f.ReadBytes, f.WrittenBytes = processTraffic()
	h.disk(f)
	h.cpu(f)
}

func (h *host) disk(f *hostFigures) {
	var s unix.Statfs_t
	if unix.Statfs(h.dir, &s) == nil {
		f.FreeDisk, f.TotalDisk = s.Bavail*uint64(s.Bsize), s.Blocks*uint64(s.Bsize)
	}
}

// cpu fills the shares since the last reading.
func (h *host) cpu(f *hostFigures) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return
	}
	process := seconds(usage.Utime) + seconds(usage.Stime)
	busy, all := machineJiffies()
	if wall := now.Sub(h.lastSample).Seconds(); !h.lastSample.IsZero() && wall > 0 {
		f.CPU = float32(100 * (process - h.lastProcess) / wall)
		if all > h.lastAll {
			f.TotalCPU = float32(100 * (busy - h.lastBusy) / (all - h.lastAll))
		}
	}
	h.lastSample, h.lastProcess, h.lastBusy, h.lastAll = now, process, busy, all
}

func seconds(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// machineJiffies sums the first line of /proc/stat.
func machineJiffies() (busy, all float64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	for i, field := range bytes.Fields(line)[1:] {
		n, _ := strconv.ParseFloat(string(field), 64)
		all += n
		if i != 3 && i != 4 { // idle, iowait
			busy += n
		}
	}
	return busy, all
}

func processStatus() (resident uint64, threads uint32) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys, 0
	}
	return field(b, "VmRSS:") << 10, uint32(field(b, "Threads:"))
}

func machineMemory() (total, available uint64) {
	b, _ := os.ReadFile("/proc/meminfo")
	return field(b, "MemTotal:") << 10, field(b, "MemAvailable:") << 10
}

func processTraffic() (read, written uint64) {
	b, _ := os.ReadFile("/proc/self/io")
	return field(b, "rchar:"), field(b, "wchar:")
}

// field is the first number on the line that starts with name, 0 when there is none.
func field(text []byte, name string) uint64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseUint(string(fields[0]), 10, 64)
				return n
			}
		}
	}
	return 0
}

// osRelease is the name and version of the operating system.
func osRelease() (name, version string) {
	name = runtime.GOOS
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return name, ""
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "NAME":
			name = strings.Trim(value, `"`)
		case "VERSION_ID":
			version = strings.Trim(value, `"`)
		}
	}
	return name, version
}
