// Package mutation tests the simulator: it breaks the core on purpose, one rule at a time, and has the
// simulator find each break within a bounded number of seeds.
//
// A break is a text that replaces another one in a source file, given to the compiler as an overlay. The
// tree stays as it is, and no switch for it exists in the code. A text that is not there exactly once
// fails loudly: the break has to be written anew for the code as it is now.
package mutation
