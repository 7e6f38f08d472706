package wire

// OptionScope names a catalogue of options.
type OptionScope uint8

// Option scopes. Only topics have options.
const (
	ScopeTopic  OptionScope = 1
	ScopeStream OptionScope = 2
	ScopeUser   OptionScope = 3
)

// DescribeOptionsRequest asks for the catalogue of a scope.
type DescribeOptionsRequest struct{ Scope OptionScope }

// DecodeDescribeOptions reads a DescribeOptionsRequest; bytes behind it are ignored.
func DecodeDescribeOptions(b []byte) (DescribeOptionsRequest, error) {
	r := reader{rest: b}
	q := DescribeOptionsRequest{Scope: OptionScope(r.u8())}
	if q.Scope < ScopeTopic || q.Scope > ScopeUser {
		r.fail()
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q DescribeOptionsRequest) Append(dst []byte) []byte { return append(dst, byte(q.Scope)) }

// GetClientRequest asks for one connection by the number that get clients lists.
type GetClientRequest struct{ ClientID uint32 }

// DecodeGetClient reads a GetClientRequest; bytes behind it are ignored.
func DecodeGetClient(b []byte) (GetClientRequest, error) {
	r := reader{rest: b}
	q := GetClientRequest{ClientID: r.u32()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q GetClientRequest) Append(dst []byte) []byte { return appendU32(dst, q.ClientID) }

// SnapshotCompression is how the entries of a diagnostic archive are packed.
type SnapshotCompression uint8

// Snapshot compressions.
const (
	SnapshotStored   SnapshotCompression = 1
	SnapshotDeflated SnapshotCompression = 2
	SnapshotBzip2    SnapshotCompression = 3
	SnapshotZstd     SnapshotCompression = 4
	SnapshotLzma     SnapshotCompression = 5
	SnapshotXz       SnapshotCompression = 6
)

// SnapshotType is one entry of a diagnostic archive.
type SnapshotType uint8

// Snapshot types.
const (
	SnapshotFilesystem    SnapshotType = 1
	SnapshotProcesses     SnapshotType = 2
	SnapshotResourceUsage SnapshotType = 3
	SnapshotTest          SnapshotType = 4
	SnapshotServerLogs    SnapshotType = 5
	SnapshotServerConfig  SnapshotType = 6
	SnapshotAll           SnapshotType = 100
)

// FileName is the entry's name in the archive, "" for SnapshotAll and unknown types.
func (t SnapshotType) FileName() string {
	switch t {
	case SnapshotFilesystem:
		return "filesystem_overview.txt"
	case SnapshotProcesses:
		return "process_list.txt"
	case SnapshotResourceUsage:
		return "resource_usage.txt"
	case SnapshotTest:
		return "test.txt"
	case SnapshotServerLogs:
		return "server_logs.txt"
	case SnapshotServerConfig:
		return "server_config.txt"
	}
	return ""
}

// GetSnapshotRequest asks for a diagnostic archive. Layout: compression:u8 count:u8 type:u8 × count.
type GetSnapshotRequest struct {
	Compression SnapshotCompression
	Types       []byte // each a SnapshotType; SnapshotAll stands alone; none asks for an empty archive
}

// DecodeGetSnapshot reads a GetSnapshotRequest and checks its codes; bytes behind it are ignored.
func DecodeGetSnapshot(b []byte) (GetSnapshotRequest, error) {
	r := reader{rest: b}
	q := GetSnapshotRequest{Compression: SnapshotCompression(r.u8()), Types: r.take(int(r.u8()))}
	if q.Compression < SnapshotStored || q.Compression > SnapshotXz {
		r.fail()
	}
	for _, code := range q.Types {
		t := SnapshotType(code)
		if t.FileName() == "" && (t != SnapshotAll || len(q.Types) != 1) {
			r.fail()
		}
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q GetSnapshotRequest) Append(dst []byte) []byte {
	return appendStr8(append(dst, byte(q.Compression)), q.Types)
}
