package cli

import (
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// Exit codes.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitConnection = 3
	exitNotFound   = 4
	exitDenied     = 5
)

// usageError says that the command was called wrongly.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// connectError says that the server cannot be reached.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

// isRefusal reports whether the server answered, and said no.
func isRefusal(err error) bool {
	var code wire.Code
	return errors.As(err, &code)
}

var notFound = map[wire.Code]bool{
	wire.CodeResourceNotFound: true, wire.CodeStreamIdNotFound: true, wire.CodeTopicIdNotFound: true,
	wire.CodePartitionNotFound: true, wire.CodeConsumerGroupIdNotFound: true, wire.CodeConsumerOffsetNotFound: true,
}

var denied = map[wire.Code]bool{
	wire.CodeUnauthenticated: true, wire.CodeUnauthorized: true, wire.CodeInvalidCredentials: true,
	wire.CodeInvalidPersonalAccessToken: true,
}

func exitCode(err error) int {
	var code wire.Code
	var wrong usageError
	var unreachable connectError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &unreachable):
		return exitConnection
	case errors.Is(err, client.ErrNotFound):
		return exitNotFound
	case errors.As(err, &code) && notFound[code]:
		return exitNotFound
	case errors.As(err, &code) && denied[code]:
		return exitDenied
	}
	return exitFailed
}

// explain turns an error into a sentence for people.
func explain(err error) string {
	var code wire.Code
	if !errors.As(err, &code) {
		return err.Error()
	}
	return fmt.Sprintf("the server refused: %s (%d, %s)", code.Meaning(), code, code.Name())
}
