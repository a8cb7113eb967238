package bulk

import "tutti/internal/core"

// Sentinels of Add.
var (
	// ErrClosed says that the Writer takes no more Writes (core.CodeUnavailable).
	ErrClosed = core.NewError(core.CodeUnavailable, "the bulk writer is closed")
	// ErrSealed says that the Ticket takes no more Writes (core.CodeConflict).
	ErrSealed = core.NewError(core.CodeConflict, "the bulk ticket is sealed")
)

// Types of an OutcomeRejected that the engine did not reject item by item.
const (
	// TypeTooLarge: the document alone is larger than a request may be.
	TypeTooLarge = "request_entity_too_large"
	// TypeInvalidRequest: the document alone makes a request that the engine cannot read.
	TypeInvalidRequest = "invalid_request"
)
