package frontdoor

import (
	"encoding/json"
	"errors"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/wire"
)

// placement passes an operator's command about where partitions are to the metadata primary.
func (s *Session) placement() action {
	if !s.can(metadata.RightManageServers, 0, 0) {
		return s.refused(wire.CodeUnauthorized)
	}
	c := s.call
	c.Group, c.Internal, c.MetadataOp = wire.MetadataGroup, link.InternalPlacement, s.view.Op
	c.Header = s.header
	c.Header.Client, c.Header.Session, c.Header.UserID = s.bound.client, s.bound.session, s.bound.user
	c.Body, c.BodyStart = s.body, 0
	return s.route(s.core.metadataService(), (*Session).placement, (*Session).placed)
}

// placed answers it: with what the primary said, or, when the command was ordered, with how that ended.
func (s *Session) placed() action {
	c := s.call
	if c.Status != 0 {
		return s.refused(c.Status)
	}
	if len(c.Out) > 0 && c.Out[0] == '{' {
		return s.answer(append(s.reset(), c.Out...))
	}
	var a placement.Answer
	var code wire.Code
	if _, err := wire.DecodeResult(c.Out); errors.As(err, &code) {
		a.Refused = "things have changed meanwhile: look again (" + code.Error() + ")"
	}
	out, _ := json.Marshal(a)
	return s.answer(append(s.reset(), out...))
}
