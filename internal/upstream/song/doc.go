// Package song is the client of a metadata repository that speaks Song's protocol (CONTRACT section 1): the studies of a server,
// pages of a study's analyses as a stream, and one analysis in any state. It must not import other upstreams, the index, the queue
// or the consumers.
package song
