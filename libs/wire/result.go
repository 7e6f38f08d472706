package wire

// A committed metadata operation, a stored offset and a login answer with a result section in front
// of the payload: count:u32, then count entries of index:u32 code:u32. Count 0 is success; the
// payload follows only then (client-wire §6).

// AppendSuccess writes the result section of success behind dst: four zero bytes. The payload, if
// any, is appended behind it.
func AppendSuccess(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// AppendRejection writes the 12-byte result section that refuses with code behind dst.
func AppendRejection(dst []byte, code Code) []byte {
	return appendU32(append(dst, 1, 0, 0, 0, 0, 0, 0, 0), uint32(code))
}

// DecodeResult splits a framed reply body. It returns the payload, or the first entry's Code as the
// error. A body without a whole section is CodeInvalidCommand.
func DecodeResult(body []byte) ([]byte, error) {
	r := reader{rest: body}
	count := r.u32()
	if r.bad || count == 0 {
		return r.rest, r.err()
	}
	r.u32() // index: one operation per request, so always 0
	code := Code(r.u32())
	if r.bad || code == 0 {
		return nil, CodeInvalidCommand
	}
	return nil, code
}
