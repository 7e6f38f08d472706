package vfs

import (
	"os"
	"syscall"
)

// osFile calls the system directly where package os has no call for it. The calls go through the
// raw connection, which keeps the descriptor from being closed and reused under them.
type osFile struct {
	*os.File
	raw syscall.RawConn
}

func newOSFile(f *os.File) (File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &osFile{File: f, raw: raw}, nil
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// grow makes the file at least size bytes long; the added range reads as zero.
func (f *osFile) grow(size int64) error {
	have, err := f.Size()
	if err != nil || have >= size {
		return err
	}
	return f.Truncate(size)
}

// prewriteStep is what Prewrite writes between two syncs, in bytes: a sync of another file waits for one step at most.
const prewriteStep = 1 << 20

func (f *osFile) Prewrite(size int64) error {
	zeros := make([]byte, min(size, prewriteStep))
	for at := int64(0); at < size; at += prewriteStep {
		if _, err := f.WriteAt(zeros[:min(size-at, prewriteStep)], at); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// control runs call with the descriptor, repeating interrupted calls.
func (f *osFile) control(name string, call func(fd int) error) error {
	var err error
	if e := f.raw.Control(func(fd uintptr) {
		for err = call(int(fd)); err == syscall.EINTR; {
			err = call(int(fd))
		}
	}); e != nil {
		err = e
	}
	if err != nil {
		return &os.PathError{Op: name, Path: f.Name(), Err: err}
	}
	return nil
}
