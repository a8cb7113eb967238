// Package analysis reads, merges and writes the JSON of analyses, without a database: what a client sends, and what the repository stores
// and returns (CONTRACT section 8).
//
// A Payload is an analysis as submitted, without the members that only the repository sets. A Document is an analysis as it is stored: the
// repository's own members, then the payload, in which each File has its ids. A body becomes a Payload by the Parse function of its
// request; a Document is made of one by New or SetPayload, changed by SetState, and read back by Parse. Values keep their notation byte for
// byte, and times are in microseconds since 1970.
//
// What is common to all bodies is in json.go and what one request may contain in submission.go and fileupdate.go; what a type does not check
// of files in file.go; the members of a stored analysis in document.go and payload.go; what an export omits in export.go. Rules that need
// other analyses or the database belong to internal/metadata.
//
// It must not import other packages of tutti than core.
package analysis
