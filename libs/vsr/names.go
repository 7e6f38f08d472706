package vsr

var whyNames = [...]string{"none", "not primary", "pipeline full", "client in flight", "write failed", "halted", "size", "isolated", "view change", "sealed"}

// String names the reason, for logs and metrics.
func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return "unknown"
}

var faultNames = [...]string{"none", "completion", "frame", "group", "sender", "chain", "conflict", "kind", "operation"}

// String names the fault, for logs and metrics.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "unknown"
}
