package wire

// AttachSession binds a data connection to the session of a coordinator connection: clients of the
// released 0.11.0 send it before a routed poll or offset write. 32 bytes (released-clients §2.4).
type AttachSession struct {
	Client    U128   // the coordinator's client id
	Session   uint64 // and its session
	Watermark uint64 // metadata position the node must have applied before it answers
}

// DecodeAttachSession reads an AttachSession; bytes behind it are ignored.
func DecodeAttachSession(b []byte) (AttachSession, error) {
	r := reader{rest: b}
	a := r.attachSession()
	return a, r.err()
}

// Append writes a's wire form behind dst.
func (a AttachSession) Append(dst []byte) []byte {
	return appendU64(appendU64(appendU128(dst, a.Client), a.Session), a.Watermark)
}

func (r *reader) attachSession() AttachSession {
	return AttachSession{Client: r.u128(), Session: r.u64(), Watermark: r.u64()}
}

// PollRouting answers a route query: what to attach with, and the node that leads the partition.
type PollRouting struct {
	AttachSession
	Primary ClusterNode
}

// DecodePollRouting reads a PollRouting; bytes behind it are ignored.
func DecodePollRouting(b []byte) (PollRouting, error) {
	r := reader{rest: b}
	p := PollRouting{AttachSession: r.attachSession(), Primary: r.clusterNode()}
	return p, r.err()
}

// Append writes p's wire form behind dst.
func (p PollRouting) Append(dst []byte) []byte {
	return p.Primary.Append(p.AttachSession.Append(dst))
}
