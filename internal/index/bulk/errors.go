package bulk

import "tutti/internal/core"

// Sentinels of Add.
var (
	// ErrClosed is returned after Close has been called (core.CodeUnavailable).
	ErrClosed = core.NewError(core.CodeUnavailable, "the bulk writer is closed")
	// ErrSealed is returned for a sealed Ticket (core.CodeConflict).
	ErrSealed = core.NewError(core.CodeConflict, "the bulk ticket is sealed")
)

// Types of an OutcomeRejected that are not the engine's. For TypeTooLarge and TypeInvalidRequest it rejected the whole request.
const (
	// TypeTooLarge is for a document that exceeds the maximum size of a request.
	TypeTooLarge = "request_entity_too_large"
	// TypeInvalidRequest is for a document that makes a request unreadable for the engine.
	TypeInvalidRequest = "invalid_request"
	// TypeTooDeep is for a document that is nested more than maxDepth levels deep; it is not sent.
	TypeTooDeep = "document_too_deep"
)
