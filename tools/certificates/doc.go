// Package certificates issues what a cluster needs to encrypt all its planes: an authority of its own, and a
// certificate for each purpose, as PEM files in one directory.
//
// It owns that directory's .pem files. It never overwrites one: what is there stays, what is missing is issued
// by the authority that is there. The authority's key is needed for nothing else than issuing more.
package certificates
