package wire

import (
	"crypto/subtle"

	"lukechampine.com/blake3"
)

// ClusterID is the cluster field of every frame: the first 16 bytes of the BLAKE3 of the cluster's
// name (replica-wire.md §3.4).
func ClusterID(name string) U128 {
	sum := blake3.Sum256([]byte(name))
	return DecodeU128(sum[:])
}

// Constants of the handshake, replica-wire.md §3.
const (
	NonceSize = 32
	MACSize   = 32
	// MinSecret is the shortest shared secret in bytes.
	MinSecret = 32
	// ExporterLabel and ExporterSize describe the TLS keying material that binds a handshake to its
	// session.
	ExporterLabel = "iggy replica psk binding"
	ExporterSize  = 32
	// ReplicaALPN is the TLS protocol name of the replica plane.
	ReplicaALPN = "iggy-replica"

	macContext = "apache-iggy replica-auth v1"
	keyContext = "apache-iggy replica-auth v1 psk->mac-key"
	macInput   = len(macContext) + 16 + 1 + 1 + NonceSize + NonceSize + 1 + ExporterSize + 1
)

// HandshakeStatus is the verdict in a ReplicaChallenge.
type HandshakeStatus uint8

// Statuses 4 and 5 are never sent: those failures close the connection without a frame.
const (
	HandshakeOk              HandshakeStatus = 0
	HandshakeUnknownCommand  HandshakeStatus = 1
	HandshakeClusterMismatch HandshakeStatus = 2
	HandshakeDirectionalRule HandshakeStatus = 3
	HandshakeAuthRequired    HandshakeStatus = 4
	HandshakeMACMismatch     HandshakeStatus = 5
)

// HandshakeKey is the MAC key of a shared secret.
type HandshakeKey [32]byte

// DeriveHandshakeKey derives the key from the secret's bytes as configured.
func DeriveHandshakeKey(secret []byte) (k HandshakeKey) {
	blake3.DeriveKey(k[:], keyContext, secret)
	return k
}

// Transcript is what a handshake MAC covers. Exporter is zero without TLS.
type Transcript struct {
	Cluster  U128
	Dialer   uint8
	Acceptor uint8
	NonceD   [NonceSize]byte
	NonceA   [NonceSize]byte
	TLS      bool
	Exporter [ExporterSize]byte
}

// MAC directions.
const (
	macDialer   = 1
	macAcceptor = 2
)

func (t *Transcript) input(direction byte) []byte {
	b := make([]byte, 0, macInput)
	b = append(b, macContext...)
	b = appendU128(b, t.Cluster)
	b = append(b, t.Dialer, t.Acceptor)
	b = append(b, t.NonceD[:]...)
	b = append(b, t.NonceA[:]...)
	b = appendFlag(b, t.TLS)
	b = append(b, t.Exporter[:]...)
	return append(b, direction)
}

func (t *Transcript) mac(k *HandshakeKey, direction byte) (mac [MACSize]byte) {
	h := blake3.New(MACSize, k[:])
	h.Write(t.input(direction))
	h.Sum(mac[:0])
	return mac
}

// DialerMAC is the MAC of a ReplicaFinish.
func (t *Transcript) DialerMAC(k *HandshakeKey) [MACSize]byte { return t.mac(k, macDialer) }

// AcceptorMAC is the MAC of a ReplicaChallenge.
func (t *Transcript) AcceptorMAC(k *HandshakeKey) [MACSize]byte { return t.mac(k, macAcceptor) }

// EqualMAC compares two MACs in constant time.
func EqualMAC(a, b [MACSize]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// HandshakeHeader is one of the three handshake frames: ReplicaHello (14: nonce of the dialer, zero
// without authentication), ReplicaChallenge (15: nonce and MAC of the acceptor, or a refusing status)
// or ReplicaFinish (16: MAC of the dialer). All are unsealed and 256 bytes.
type HandshakeHeader struct {
	Preamble
	Nonce  [NonceSize]byte
	MAC    [MACSize]byte
	Status HandshakeStatus
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand or ErrSize.
func (h *HandshakeHeader) Decode(b []byte) (err error) {
	if h.Preamble, err = DecodePreamble(b); err != nil {
		return err
	}
	copy(h.Nonce[:], b[128:])
	copy(h.MAC[:], b[160:])
	h.Status = HandshakeStatus(b[192])
	switch {
	case h.Command < CommandReplicaHello || h.Command > CommandReplicaFinish:
		return ErrCommand
	case h.Size != HeaderSize:
		return ErrSize
	}
	return nil
}

// Put writes the frame to the first 256 bytes of b, with the command as it is set.
func (h *HandshakeHeader) Put(b []byte) {
	h.start(b, h.Command)
	copy(b[128:], h.Nonce[:])
	copy(b[160:], h.MAC[:])
	b[192] = byte(h.Status)
}
