package bulk

import (
	"context"

	"tutti/internal/core"
)

// Engine is an index as the Writer needs it. Its methods are called by several goroutines at once.
type Engine interface {
	// Encode appends the engine's encoding of w to dst. Of the longer slice, out[docStart:docEnd] is the document;
	// the two are equal for a delete. It is called with the Writer locked: it must neither block nor keep dst.
	Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int)
	// Write sends b.Payload() and returns one Result per item, in the order of b.Items. It does not change the bytes,
	// and once it has returned nothing reads them any more. Results share no memory with b. Documents that it cannot send
	// before b.Deadline are CodeOverloaded.
	//
	// An error is about the whole request and is a *core.Error: CodeOverloaded (sent again, slower), CodeUnavailable
	// (the outcome is unknown), CodeTooLarge (split), CodeInvalid (one or more items make the request unreadable) or
	// CodeIndexBlocked (the index is missing, closed or blocked). Any other error counts as CodeUnavailable.
	Write(ctx context.Context, b core.Batch) ([]core.Result, error)
}

// Memory bounds the bytes that are held at one time.
type Memory interface {
	// AcquireFor blocks until n bytes may be held for an index, or ctx ends. release ends that; it may be called again.
	// Other indices cannot block one for which nothing is held.
	AcquireFor(ctx context.Context, index string, n int64) (release func(), err error)
}
