package service

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RootPasswordFile is the file below the data directory that holds a generated root password.
const RootPasswordFile = "root-password"

// RootUser is the first user's name and password.
type RootUser struct {
	Name     string
	Password Secret
	From     string // where the password stands, in words for a person
}

// RootUser returns the credentials for the first start: root.username and root.password if given,
// iggy / iggy under --with-default-root-credentials, else iggy with a password that is generated
// into <data>/root-password (mode 0600) or, if that file is there already, read from it. The file
// is durable when RootUser returns, so a password that was ever in force can be found again.
//
// Call it only while no user exists, with the data directory locked.
func (c *Config) RootUser() (RootUser, error) {
	switch {
	case c.Root.Username != "":
		return RootUser{c.Root.Username, c.Root.Password, c.Source("root.password")}, nil
	case c.DefaultRoot:
		return RootUser{"iggy", NewSecret(developmentPassword), "flag --with-default-root-credentials"}, nil
	}
	path := filepath.Join(c.System.Path, RootPasswordFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text() + "\n")
		err = writeDurably(path, text, 0o600)
	}
	if err != nil {
		return RootUser{}, fmt.Errorf("root password: %w", err)
	}
	password := strings.TrimSpace(string(text))
	if len(password) < 3 || len(password) > 100 {
		return RootUser{}, fmt.Errorf("root password: %s does not hold a password of 3 to 100 bytes", path)
	}
	return RootUser{"iggy", NewSecret(password), path}, nil
}

// writeDurably makes or replaces a file in one step: whoever looks sees the old content or the new.
func writeDurably(path string, content []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temporary := path + ".tmp"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil { // a leftover of another mode keeps its mode
		return errors.Join(err, f.Close())
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
