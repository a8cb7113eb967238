package core

import "context"

// The ports below are those that several packages need alike. A port of one package stands there.

// Upstream reads one repository. Page calls each for every record of the rows [offset, offset+limit) in order; a record's body is valid only
// until each returns. Errors: CodeAbsent when the upstream itself reports that the record or organization does not exist, CodeUnavailable and
// CodeOverloaded when a retry may succeed, CodeUpstream otherwise.
type Upstream interface {
	// Organizations returns the ids of all organizations.
	Organizations(ctx context.Context) ([]string, error)
	Page(ctx context.Context, organization string, offset, limit int, each func(Record) error) (PageInfo, error)
	Record(ctx context.Context, organization, id string) (Record, error)
}

// Publisher stores Requests in place of the pending ones of their subjects. Publish returns nil only after the queue's acknowledgement;
// CodeOverloaded when the queue is full, CodeUnavailable when it cannot be reached.
type Publisher interface {
	Publish(ctx context.Context, r Request) error
}

// Cells are named compare-and-swap cells that all processes share.
type Cells interface {
	// Cell returns the value and the revision of a cell, "" and 0 when it was never set.
	Cell(ctx context.Context, name string) (value string, revision uint64, err error)
	// SetCell sets a cell; CodeConflict when revision is not its current one.
	SetCell(ctx context.Context, name, value string, revision uint64) error
}

// Memory bounds the bytes that callers hold at one time.
type Memory interface {
	// Acquire blocks until n bytes are free for a caller, or ctx ends. release returns them; it may be called again. A known caller that holds
	// nothing does not wait.
	Acquire(ctx context.Context, c Caller, n int64) (release func(), err error)
}

// ResponseMemory bounds the bytes of responses, whose size is known only when they are made.
type ResponseMemory interface {
	// Reserve blocks until n bytes are free for a caller, or ctx ends. shrink reduces what is reserved to a number of bytes; with 0 it releases all.
	Reserve(ctx context.Context, c Caller, n int64) (shrink func(to int64), err error)
}

// OwnedMemory bounds the bytes that repositories and indices hold at one time.
type OwnedMemory interface {
	// AcquireFor blocks until an owner may hold n bytes, or ctx ends. release returns them; it may be called again. One that holds nothing is not
	// blocked by others.
	AcquireFor(ctx context.Context, owner string, n int64) (release func(), err error)
}

// Jobs stores jobs. Get returns CodeNotFound when there is none. Update is a compare-and-set that is retried on a conflict.
type Jobs interface {
	Create(ctx context.Context, j Job) error
	Get(ctx context.Context, id string) (Job, error)
	Update(ctx context.Context, id string, change func(*Job) error) (Job, error)
}

// Catalogues are the catalogues of the configuration.
type Catalogues interface {
	// Catalogues returns the current set without blocking, never nil. The pointer changes only when the set does, and an unchanged catalogue
	// keeps its pointer in a new set.
	Catalogues() *CatalogueSet
}
