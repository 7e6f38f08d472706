package service

import "errors"

// Exit codes of every program.
const (
	ExitDone    = 0 // asked to stop, drained
	ExitFailed  = 1 // anything else
	ExitConfig  = 2 // bad configuration; the message names key, value, source and what is allowed
	ExitStorage = 3 // a sync failed: nothing written since can be trusted, start again
)

type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// WithExit marks an error with the code the process shall end with.
func WithExit(code int, err error) error { return &exitError{code, err} }

// ExitCode returns the code of an error: its mark, ExitConfig for a ConfigError, ExitDone for nil.
func ExitCode(err error) int {
	var marked *exitError
	var config *ConfigError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &marked):
		return marked.code
	case errors.As(err, &config):
		return ExitConfig
	}
	return ExitFailed
}
