package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// osFS is the operating system's file system below one root directory.
type osFS struct {
	root   string
	bootID string
}

// NewOS returns the operating system's file system below root, which must exist before files are
// made in it (MkdirAll("") makes it).
func NewOS(root string) FS { return &osFS{root: root, bootID: bootID(root)} }

// path turns a name of ours into one of the system's; names that would leave the root are refused.
func (o *osFS) path(name string) (string, error) {
	if name == "" || name == "." {
		return o.root, nil
	}
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return "", &fs.PathError{Op: "resolve", Path: name, Err: fs.ErrInvalid}
	}
	return filepath.Join(o.root, local), nil
}

func (o *osFS) Open(name string) (File, error) { return o.open(name, os.O_RDWR) }

func (o *osFS) Create(name string) (File, error) {
	return o.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (o *osFS) open(name string, flag int) (File, error) {
	p, err := o.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return newOSFile(f)
}

func (o *osFS) Rename(from, to string) error {
	a, err := o.path(from)
	if err != nil {
		return err
	}
	b, err := o.path(to)
	if err != nil {
		return err
	}
	return os.Rename(a, b)
}

func (o *osFS) Remove(name string) error {
	p, err := o.path(name)
	if err != nil {
		return err
	}
	return os.Remove(p)
}

func (o *osFS) RemoveAll(name string) error {
	p, err := o.path(name)
	if err != nil {
		return err
	}
	return os.RemoveAll(p)
}

func (o *osFS) MkdirAll(name string) error {
	p, err := o.path(name)
	if err != nil {
		return err
	}
	return os.MkdirAll(p, 0o750)
}

func (o *osFS) ReadDir(name string) ([]Entry, error) {
	p, err := o.path(name)
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(p)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(list))
	for _, d := range list {
		e := Entry{Name: d.Name(), Dir: d.IsDir()}
		if info, err := d.Info(); err == nil {
			e.Size = info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		} else {
			continue // removed since it was listed
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (o *osFS) Stat(name string) (Entry, error) {
	p, err := o.path(name)
	if err != nil {
		return Entry{}, err
	}
	return statEntry(p)
}

func (o *osFS) SyncDir(name string) error {
	p, err := o.path(name)
	if err != nil {
		return err
	}
	d, err := os.Open(p)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

func (o *osFS) Lock(name string) (File, error) {
	p, err := o.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = &fs.PathError{Op: "lock", Path: p, Err: ErrLocked}
		}
		return nil, errors.Join(err, f.Close())
	}
	return newOSFile(f)
}

func (o *osFS) BootID() string { return o.bootID }
