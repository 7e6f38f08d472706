package wire

// RegisterOutcome answers a forwarded login.
type RegisterOutcome uint8

// Outcomes of ForwardRegister. NotCaughtUp is known but never sent by the reference.
const (
	RegisterOk          RegisterOutcome = 0
	RegisterNotPrimary  RegisterOutcome = 1
	RegisterNotCaughtUp RegisterOutcome = 2
	RegisterBusy        RegisterOutcome = 3 // pipeline full
	RegisterInProgress  RegisterOutcome = 4
	RegisterCanceled    RegisterOutcome = 5
	RegisterForeign     RegisterOutcome = 6 // the client id belongs to another user: final
)

// LogoutOutcome answers a forwarded logout.
type LogoutOutcome uint8

// Outcomes of ForwardLogout.
const (
	LogoutOk         LogoutOutcome = 0
	LogoutNotPrimary LogoutOutcome = 1
	LogoutBusy       LogoutOutcome = 2 // pipeline full
	LogoutInProgress LogoutOutcome = 3
	LogoutCanceled   LogoutOutcome = 4
)

// ForwardRegisterHeader hands a verified login to the metadata primary (command 26, no body).
// Credentials never travel.
type ForwardRegisterHeader struct {
	Preamble
	Client U128 // not 0
	Nonce  U128 // not 0; high half names the origin
	UserID uint32
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrSize,
// ErrReserved or ErrField.
func (h *ForwardRegisterHeader) Decode(b []byte) error {
	if err := h.open(b, CommandForwardRegister); err != nil {
		return err
	}
	h.Client, h.Nonce, h.UserID = DecodeU128(b[128:]), DecodeU128(b[144:]), le.Uint32(b[160:])
	return forwarded(b, h.Size, h.Client, h.Nonce, b[164:HeaderSize])
}

// forwarded applies the checks that the four session frames share.
func forwarded(b []byte, size uint32, client, nonce U128, reserved []byte) error {
	if err := sealedSize(b, size); err != nil {
		return err
	}
	if !zero(reserved) {
		return ErrReserved
	}
	if client.IsZero() || nonce.IsZero() {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *ForwardRegisterHeader) Put(b []byte) {
	h.start(b, CommandForwardRegister)
	h.Client.Put(b[128:])
	h.Nonce.Put(b[144:])
	le.PutUint32(b[160:], h.UserID)
	Seal(b)
}

// ForwardRegisterResultHeader answers it (command 27, no body). Epoch and Watermark are 0 unless the
// outcome is RegisterOk.
type ForwardRegisterResultHeader struct {
	Preamble
	Nonce     U128
	Client    U128
	Epoch     uint64 // op of the Register
	Watermark uint64 // highest committed request number of the client
	Outcome   RegisterOutcome
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrOutcome, ErrSeal,
// ErrSize, ErrReserved or ErrField.
func (h *ForwardRegisterResultHeader) Decode(b []byte) error {
	if err := h.open(b, CommandForwardRegisterResult); err != nil {
		return err
	}
	h.Nonce, h.Client = DecodeU128(b[128:]), DecodeU128(b[144:])
	h.Epoch, h.Watermark, h.Outcome = le.Uint64(b[160:]), le.Uint64(b[168:]), RegisterOutcome(b[255])
	if h.Outcome > RegisterForeign {
		return ErrOutcome
	}
	if err := forwarded(b, h.Size, h.Client, h.Nonce, b[176:255]); err != nil {
		return err
	}
	if h.Outcome != RegisterOk && h.Epoch|h.Watermark != 0 {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *ForwardRegisterResultHeader) Put(b []byte) {
	h.start(b, CommandForwardRegisterResult)
	h.Nonce.Put(b[128:])
	h.Client.Put(b[144:])
	le.PutUint64(b[160:], h.Epoch)
	le.PutUint64(b[168:], h.Watermark)
	b[255] = byte(h.Outcome)
	Seal(b)
}

// ForwardLogoutHeader hands the end of a session to the metadata primary (command 28, no body).
type ForwardLogoutHeader struct {
	Preamble
	Client  U128
	Nonce   U128
	Session uint64 // not 0
	Request uint64 // not 0; 2^64-1 after a lost connection
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrSize,
// ErrReserved or ErrField.
func (h *ForwardLogoutHeader) Decode(b []byte) error {
	if err := h.open(b, CommandForwardLogout); err != nil {
		return err
	}
	h.Client, h.Nonce = DecodeU128(b[128:]), DecodeU128(b[144:])
	h.Session, h.Request = le.Uint64(b[160:]), le.Uint64(b[168:])
	if err := forwarded(b, h.Size, h.Client, h.Nonce, b[176:HeaderSize]); err != nil {
		return err
	}
	if h.Session == 0 || h.Request == 0 {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *ForwardLogoutHeader) Put(b []byte) {
	h.start(b, CommandForwardLogout)
	h.Client.Put(b[128:])
	h.Nonce.Put(b[144:])
	le.PutUint64(b[160:], h.Session)
	le.PutUint64(b[168:], h.Request)
	Seal(b)
}

// ForwardLogoutResultHeader answers it (command 29, no body). Commit is 0 unless the outcome is LogoutOk.
type ForwardLogoutResultHeader struct {
	Preamble
	Nonce   U128
	Client  U128
	Commit  uint64 // op of the Logout, or the commit point when the session was gone already
	Outcome LogoutOutcome
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrOutcome, ErrSeal,
// ErrSize, ErrReserved or ErrField.
func (h *ForwardLogoutResultHeader) Decode(b []byte) error {
	if err := h.open(b, CommandForwardLogoutResult); err != nil {
		return err
	}
	h.Nonce, h.Client, h.Commit = DecodeU128(b[128:]), DecodeU128(b[144:]), le.Uint64(b[160:])
	if h.Outcome = LogoutOutcome(b[255]); h.Outcome > LogoutCanceled {
		return ErrOutcome
	}
	if err := forwarded(b, h.Size, h.Client, h.Nonce, b[168:255]); err != nil {
		return err
	}
	if h.Outcome != LogoutOk && h.Commit != 0 {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *ForwardLogoutResultHeader) Put(b []byte) {
	h.start(b, CommandForwardLogoutResult)
	h.Nonce.Put(b[128:])
	h.Client.Put(b[144:])
	le.PutUint64(b[160:], h.Commit)
	b[255] = byte(h.Outcome)
	Seal(b)
}
