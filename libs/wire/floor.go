package wire

// Floor is how far a group was shown: a view, and in its log the offset behind the newest message that was
// acknowledged or read there. The zero Floor is nothing at all.
//
// The view comes first. Who serves a newer one has everything that was acknowledged in an older one; if its
// log is shorter nevertheless, the members gave something up together, and the shorter log is the true one.
type Floor struct {
	View uint32
	Next uint64
}

// Below reports whether a log that stands at f lacks something of what o says was shown.
func (f Floor) Below(o Floor) bool {
	return f.View < o.View || f.View == o.View && f.Next < o.Next
}
