package node

import (
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
)

// tcp is the address of the TCP listener, "" when it is off.
func (n *node) tcp() string {
	if !n.config.TCP.Enabled {
		return ""
	}
	return n.config.TCP.Address
}

// quic is the QUIC listener as configured.
func (n *node) quic() frontdoor.QUIC {
	c := &n.config.QUIC
	if !c.Enabled {
		return frontdoor.QUIC{}
	}
	return frontdoor.QUIC{
		Address: c.Address, SelfSigned: c.Certificate.SelfSigned, CertFile: c.Certificate.CertFile, KeyFile: c.Certificate.KeyFile,
		Streams: c.MaxConcurrentBidiStreams, PacketSize: uint16(c.InitialMTU),
		ReceiveWindow: uint64(c.ReceiveWindow), StreamReceiveWindow: uint64(c.StreamReceiveWindow),
		KeepAlive: c.KeepAliveInterval, Idle: c.MaxIdleTimeout,
	}
}

// webSocket is the WebSocket listener as configured.
func (n *node) webSocket() frontdoor.WebSocket {
	c := &n.config.WebSocket
	if !c.Enabled {
		return frontdoor.WebSocket{}
	}
	return frontdoor.WebSocket{
		Address: c.Address,
		TLS: frontdoor.TLS{
			Enabled: c.TLS.Enabled, CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, SelfSigned: c.TLS.SelfSigned,
		},
		ReadBuffer: int(c.ReadBufferSize), WriteBuffer: int(c.WriteBufferSize),
		MaxMessage: uint32(c.MaxMessageSize), MaxFragment: int(c.MaxFrameSize),
	}
}
