package service

import "time"

// TCP is the binary protocol's main listener.
type TCP struct {
	// Serve the binary protocol over TCP.
	Enabled bool `key:"enabled" default:"true"`
	// Listener for clients.
	Address string `key:"address" default:"127.0.0.1:8090" form:"hostport"`
	TLS     TLS    `key:"tls"`
}

// TLS describes the certificate of a listener.
type TLS struct {
	// Serve TLS, and nothing else, on this listener.
	Enabled bool `key:"enabled" default:"false"`
	// Make a throw-away certificate at start if the certificate file does not exist.
	SelfSigned bool `key:"self_signed" default:"true"`
	// Certificate chain, PEM.
	CertFile string `key:"cert_file" default:"core/certs/iggy_cert.pem"`
	// Private key, PEM.
	KeyFile string `key:"key_file" default:"core/certs/iggy_key.pem"`
}

// QUIC is the binary protocol over QUIC.
type QUIC struct {
	// Serve the binary protocol over QUIC.
	Enabled bool `key:"enabled" default:"true"`
	// Listener for clients, UDP.
	Address string `key:"address" default:"127.0.0.1:8080" form:"hostport"`
	// Requests a connection may have open at once, and one more whose answer is not acknowledged yet. They are served one at a time.
	MaxConcurrentBidiStreams int `key:"max_concurrent_bidi_streams" default:"1" range:"1..65535"`
	// First packet size tried; more than 1452 bytes is as much as 1452.
	InitialMTU Size `key:"initial_mtu" default:"1200 B" range:"1200 B..65535 B"`
	// Bytes in flight to a client.
	SendWindow Size `key:"send_window" default:"64 MiB" range:"1 B.." use:"none: the client's own window bounds them"`
	// Bytes in flight from a client.
	ReceiveWindow Size `key:"receive_window" default:"64 MiB" range:"1 B..4294967295 B"`
	// Bytes in flight on one stream; at most `receive_window`.
	StreamReceiveWindow Size `key:"stream_receive_window" default:"64 MiB" range:"1 B..4294967295 B"`
	// Time between keep-alive packets; 0 sends none.
	KeepAliveInterval time.Duration `key:"keep_alive_interval" default:"10 s"`
	// A connection silent for this long is closed; 0 never.
	MaxIdleTimeout time.Duration `key:"max_idle_timeout" default:"30 s"`
	Certificate    Certificate   `key:"certificate"`
}

// Certificate is the QUIC listener's certificate.
type Certificate struct {
	// Make a throw-away certificate at every start.
	SelfSigned bool `key:"self_signed" default:"true"`
	// Certificate chain, PEM; needed unless `self_signed`.
	CertFile string `key:"cert_file"`
	// Private key, PEM; needed unless `self_signed`.
	KeyFile string `key:"key_file"`
}

// HTTP is the HTTP/JSON interface.
type HTTP struct {
	// Serve HTTP.
	Enabled bool `key:"enabled" default:"true"`
	// Listener for clients.
	Address string `key:"address" default:"127.0.0.1:3000" form:"hostport"`
	// Largest request body; above it the answer is 413.
	MaxRequestSize Size `key:"max_request_size" default:"2 MB" range:"1 B..64 MiB"`
	// Serve the web interface at `/ui`.
	WebUI   bool        `key:"web_ui" default:"false" use:"none: this version has no web interface"`
	CORS    CORS        `key:"cors"`
	JWT     JWT         `key:"jwt"`
	Metrics HTTPMetrics `key:"metrics"`
	TLS     HTTPTLS     `key:"tls"`
}

// CORS are the cross-origin headers of the HTTP interface.
type CORS struct {
	// Answer cross-origin requests.
	Enabled bool `key:"enabled" default:"true"`
	// Methods allowed.
	AllowedMethods []string `key:"allowed_methods" default:"[GET, POST, PUT, DELETE]"`
	// Origins allowed; `*` is any.
	AllowedOrigins []string `key:"allowed_origins" default:"[*]"`
	// Request headers allowed.
	AllowedHeaders []string `key:"allowed_headers" default:"[content-type, authorization]"`
	// Response headers a page may read.
	ExposedHeaders []string `key:"exposed_headers" default:"[iggy-view]"`
	// Allow credentials.
	AllowCredentials bool `key:"allow_credentials" default:"false"`
	// Allow requests from public pages to private networks.
	AllowPrivateNetwork bool `key:"allow_private_network" default:"false"`
}

// JWT describes the bearer tokens of the HTTP interface.
type JWT struct {
	// Signature algorithm.
	Algorithm string `key:"algorithm" default:"HS256" one:"HS256 HS384 HS512"`
	// Issuer of own tokens.
	Issuer string `key:"issuer" default:"iggy.apache.org"`
	// Audience of own tokens.
	Audience string `key:"audience" default:"iggy.apache.org"`
	// Issuers accepted.
	ValidIssuers []string `key:"valid_issuers" default:"[iggy.apache.org]"`
	// Audiences accepted.
	ValidAudiences []string `key:"valid_audiences" default:"[iggy.apache.org]"`
	// Life of an access token.
	AccessTokenExpiry time.Duration `key:"access_token_expiry" default:"1 h"`
	// Tolerated difference of clocks.
	ClockSkew time.Duration `key:"clock_skew" default:"5 s"`
	// Delay before a new token counts.
	NotBefore time.Duration `key:"not_before" default:"0 s"`
	// Key that signs tokens. Empty: a random one per start, or one derived from the cluster secret.
	EncodingSecret Secret `key:"encoding_secret"`
	// Key that verifies tokens. Empty: as `encoding_secret`.
	DecodingSecret Secret `key:"decoding_secret"`
	// The two secrets are base64 text.
	UseBase64Secret bool            `key:"use_base64_secret" default:"false"`
	TrustedIssuers  []TrustedIssuer `key:"trusted_issuers"`
}

// TrustedIssuer is an identity provider whose tokens are accepted.
type TrustedIssuer struct {
	// Issuer of the token.
	Issuer string `key:"issuer"`
	// Audience the token must have.
	Audience string `key:"audience"`
	// Address of the issuer's key set.
	JWKSURL string `key:"jwks_url" form:"url"`
	// User a token of this issuer acts as. Root, 0, is refused.
	UserID uint32 `key:"user_id" range:"1..4294967295"`
}

// HTTPMetrics is the metrics page of the HTTP interface.
type HTTPMetrics struct {
	// Serve metrics on the client's HTTP listener too; they need a bearer token there.
	Enabled bool `key:"enabled" default:"true"`
	// Path of the page.
	Endpoint string `key:"endpoint" default:"/metrics"`
}

// HTTPTLS describes the certificate of the HTTP listener.
type HTTPTLS struct {
	// Serve HTTPS, and nothing else, on this listener.
	Enabled bool `key:"enabled" default:"false"`
	// Certificate chain, PEM.
	CertFile string `key:"cert_file" default:"core/certs/iggy_cert.pem"`
	// Private key, PEM.
	KeyFile string `key:"key_file" default:"core/certs/iggy_key.pem"`
}

// WebSocket is the binary protocol over WebSocket. Sizes of 0 mean: as the description says.
type WebSocket struct {
	// Serve the binary protocol over WebSocket.
	Enabled bool `key:"enabled" default:"true"`
	// Listener for clients.
	Address string `key:"address" default:"127.0.0.1:8092" form:"hostport"`
	// Read buffer of a connection; 0 is 4 KiB. Payloads larger than it are read without it.
	ReadBufferSize Size `key:"read_buffer_size" range:"0..16 MiB"`
	// Write buffer of a connection; 0 is 4 KiB. Replies larger than it are written without it.
	WriteBufferSize Size `key:"write_buffer_size" range:"0..16 MiB"`
	// Bytes that may wait to be written; 0 is no limit.
	MaxWriteBufferSize Size `key:"max_write_buffer_size" use:"none: a reply is written before the next request is read"`
	// Largest request, at most `message_bus.max_message_size`; 0 is as much.
	MaxMessageSize Size `key:"max_message_size" range:"0..64 MiB"`
	// A reply above this size leaves in several WebSocket frames; 0 is 16 MiB. Of clients any frame is taken, as far as `max_message_size` goes.
	MaxFrameSize Size `key:"max_frame_size" range:"0..64 MiB"`
	// Accept frames without a mask.
	AcceptUnmaskedFrames bool `key:"accept_unmasked_frames" default:"false" use:"none: frames of clients must have a mask (RFC 6455)"`
	TLS                  TLS  `key:"tls"`
}
