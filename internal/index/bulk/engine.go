package bulk

import (
	"context"

	"tutti/internal/core"
)

// Engine is the part of an index that the Writer needs. Its methods must be safe for concurrent use.
type Engine interface {
	// Encode appends the engine's encoding of w to dst. out[docStart:docEnd] is the document in the result; the bounds are equal
	// for a delete. It is called with the Writer locked: it must neither block nor keep dst.
	Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int)
	// Write sends b.Payload() and returns one Result per item, in the order of b.Items. It must not change the bytes,
	// nor read them after it has returned. Results must not share memory with b. Documents that it cannot send
	// before b.Deadline are CodeOverloaded.
	//
	// An error is about the whole request and is a *core.Error: CodeOverloaded (retried with backoff), CodeUnavailable
	// (the outcome is unknown), CodeTooLarge (split), CodeInvalid (one or more items make the request unreadable) or
	// CodeIndexBlocked (the index is missing, closed or blocked). Any other error counts as CodeUnavailable.
	Write(ctx context.Context, b core.Batch) ([]core.Result, error)
}
