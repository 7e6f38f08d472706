package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ErrRefused says that the cluster refused a command about where partitions are; the error's text says why.
var ErrRefused = errors.New("refused")

// text is a body that is sent as it is.
type text []byte

func (t text) Append(dst []byte) []byte { return append(dst, t...) }

// Place gives the metadata primary a command about where partitions are. Of DoStatus the answer holds the cluster.
func (c *Client) Place(q placement.Command) (*placement.Cluster, error) {
	asked, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	body, err := c.ask(wire.CmdPlacement, text(asked))
	if err != nil {
		return nil, err
	}
	var a placement.Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("%w: reply of %s: %v", ErrProtocol, wire.CmdPlacement, err)
	}
	if a.Refused != "" {
		return nil, fmt.Errorf("%w: %s", ErrRefused, a.Refused)
	}
	return a.Cluster, nil
}
