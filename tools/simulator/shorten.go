package simulator

import "slices"

// Shorten returns the run with as few faults and as little time as still break the same rule. A run that
// passes comes back as it is.
func Shorten(o Options) Options {
	failed := Run(o, nil)
	if failed.Passed() {
		return o
	}
	rule := failed.Violation.Rule
	same := func(try Options) bool {
		r := Run(try, nil)
		return !r.Passed() && r.Violation.Rule == rule
	}
	config := Draw(o)
	for f := range faultCount {
		if config.Rates[f] == 0 || slices.Contains(o.Without, f) {
			continue
		}
		try := o
		try.Without = append(slices.Clone(o.Without), f)
		if same(try) {
			o = try
		}
	}
	for length := config.Length / 2; length > 10*millisecond; length /= 2 {
		if try := o; true {
			try.Length = max(o.Length, config.Length) - length
			if o.Length > 0 {
				try.Length = o.Length - min(o.Length-1, length)
			}
			if same(try) {
				o = try
			}
		}
	}
	return o
}
