// Package flagfile gives a command --config: a TOML file whose keys are names of flags. What stands
// on the command line wins; a key that is no flag of the command is an error.
package flagfile
