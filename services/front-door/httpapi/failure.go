package httpapi

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/whippet-mq/whippet/libs/wire"
)

// failure is an answer that is not a success, with the body clients of the interface expect.
type failure struct {
	status int    // of HTTP
	id     uint32 // protocol code, or the HTTP status where there is none
	code   string // its name in snake case
	reason string // for people
	field  string // of the request, "" for none
	retry  bool   // say Retry-After: 1
	bare   bool   // no body
	closes bool   // the connection ends
}

func (f *failure) Error() string { return f.code + ": " + f.reason }

// Answers that carry no protocol code.
var (
	errNoRoute       = &failure{status: http.StatusNotFound, code: "no_route", bare: true}
	errMissing       = &failure{status: http.StatusNotFound, id: 404, code: "not_found", reason: "Resource not found."}
	errTooLarge      = &failure{status: http.StatusRequestEntityTooLarge, id: 413, code: "payload_too_large", reason: "The request body is larger than http.max_request_size.", closes: true}
	errContentType   = &failure{status: http.StatusUnsupportedMediaType, id: 415, code: "unsupported_media_type", reason: "The body must be application/json."}
	errCutBody       = &failure{status: http.StatusBadRequest, id: 400, code: "incomplete_body", reason: "The body ended early or came too slowly.", closes: true}
	errInFlight      = &failure{status: http.StatusTooManyRequests, id: 429, code: "too_many_in_flight_writes", reason: "Too many writes of this credential are in flight."}
	errBusy          = &failure{status: http.StatusServiceUnavailable, id: 503, code: "server_busy", reason: "The server is busy.", retry: true}
	errNoSession     = &failure{status: http.StatusServiceUnavailable, id: 9, code: "cannot_establish_connection", reason: "No session can be opened now.", retry: true}
	errProduceUnsure = &failure{status: http.StatusGatewayTimeout, id: 504, code: "produce_timeout", reason: "The send was not confirmed in time; its outcome is unknown."}
	errOffsetUnsure  = &failure{status: http.StatusGatewayTimeout, id: 504, code: "offset_write_timeout", reason: "The write was not confirmed in time; its outcome is unknown."}
)

// badRequest is a query, path segment or JSON text that cannot be read.
func badRequest(reason string) *failure {
	return &failure{status: http.StatusBadRequest, id: 400, code: "bad_request", reason: reason}
}

// unfit is a JSON text of the wrong shape.
func unfit(reason string) *failure {
	return &failure{status: http.StatusUnprocessableEntity, id: 422, code: "unprocessable_entity", reason: reason}
}

// refusal is the answer for a protocol code.
func refusal(code wire.Code) *failure {
	f := &failure{status: http.StatusBadRequest, id: uint32(code), code: snake(code.Name()), reason: code.Meaning() + ".", field: fields[code]}
	switch code {
	case wire.CodeResourceNotFound, wire.CodeClientNotFound, wire.CodeStreamIdNotFound, wire.CodeTopicIdNotFound,
		wire.CodePartitionNotFound, wire.CodeConsumerOffsetNotFound, wire.CodeSegmentNotFound, wire.CodeConsumerGroupIdNotFound,
		wire.CodeConsumerGroupNameNotFound, wire.CodeConsumerGroupMemberNotFound:
		f.status = http.StatusNotFound
	case wire.CodeUnauthenticated, wire.CodeInvalidPersonalAccessToken, wire.CodeAccessTokenMissing, wire.CodeInvalidAccessToken:
		f.status = http.StatusUnauthorized
	case wire.CodeUnauthorized:
		f.status = http.StatusForbidden
	case wire.CodeInvalidClientId:
		f.status = http.StatusConflict
	case wire.CodeTransientNotCommitted, wire.CodeTransientNotAccepted:
		f.status, f.retry = http.StatusServiceUnavailable, true
	case wire.CodeCannotEstablishConnection:
		return errNoSession
	}
	return f
}

// fields names the part of a request that a code is about.
var fields = map[wire.Code]string{
	wire.CodeStreamIdNotFound: "stream_id", wire.CodeTopicIdNotFound: "topic_id", wire.CodePartitionNotFound: "partition_id",
	wire.CodeSegmentNotFound: "segment_id", wire.CodeClientNotFound: "client_id", wire.CodeStreamNameAlreadyExists: "name",
	wire.CodeInvalidStreamName: "name", wire.CodeTopicNameAlreadyExists: "name", wire.CodeInvalidTopicName: "name",
	wire.CodeConsumerGroupNameAlreadyExists: "name", wire.CodePersonalAccessTokenAlreadyExists: "name",
	wire.CodeInvalidOffset: "offset", wire.CodeUserAlreadyExists: "username",
}

// snake turns InvalidCommand into invalid_command.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// failureBody is a failure on the wire, in the order clients print it.
type failureBody struct {
	ID     uint32  `json:"id"`
	Code   string  `json:"code"`
	Reason string  `json:"reason"`
	Field  *string `json:"field"`
}

func (f *failure) body() failureBody {
	b := failureBody{ID: f.id, Code: f.code, Reason: f.reason}
	if f.field != "" {
		b.Field = &f.field
	}
	return b
}
