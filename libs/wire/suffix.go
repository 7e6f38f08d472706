package wire

// MaxSuffix is the most headers a view-change suffix holds.
const MaxSuffix = 128
