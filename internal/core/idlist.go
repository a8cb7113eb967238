package core

// Bounds of a list of ids that one job indexes.
const (
	// MaxListedIDs is the largest number of distinct ids, MaxListedOrganizations that of their organizations.
	MaxListedIDs           = 100_000
	MaxListedOrganizations = 1000
	// MaxOpenLists is the largest number of lists of a repository whose jobs have not ended: together they have at most ten million ids.
	MaxOpenLists = 100
	// IDsPerPage is the number of ids of a page of a list: with their outcomes, any 100 fit into one message of the queue.
	IDsPerPage = 100
	// MaxOutcomeText bounds each text of an outcome, in bytes.
	MaxOutcomeText = 300
)

// IDOutcome is what became of one id of a list.
type IDOutcome string

// Outcomes of an id. An id without one has not been processed yet.
const (
	IDIndexed IDOutcome = "indexed"
	// IDRemoved: the repository has no record with the id to index, and the index has no document of it; in a list of one organization
	// also a record that belongs to another one.
	IDRemoved IDOutcome = "removed"
	// IDExcluded: an exclusion rule applies to the record, which has no documents.
	IDExcluded IDOutcome = "excluded"
	// IDStale: the index already had a newer version.
	IDStale IDOutcome = "stale"
	// IDMismatch: the record belongs to another organization; nothing changed. Only in lists of a whole repository.
	IDMismatch     IDOutcome = "mismatch"
	IDDeadLettered IDOutcome = "deadLettered"
	// IDRetrying: the record could not be fetched or written for now, and has a request of its own, which the queue retries.
	IDRetrying IDOutcome = "retrying"
	// IDQueued and IDSkipped are outcomes of ids that were not processed, while the job has not ended and after it.
	IDQueued  IDOutcome = "queued"
	IDSkipped IDOutcome = "skipped"
)

// Settled reports whether the document of the id is in its final state for the job.
func (o IDOutcome) Settled() bool {
	return o == IDIndexed || o == IDRemoved || o == IDExcluded || o == IDStale || o == IDMismatch || o == IDDeadLettered
}

// ListedID is one id of a list, with its outcome.
type ListedID struct {
	// Organization is empty in a stored page, whose key names it.
	Organization string    `json:"organization,omitempty"`
	ID           string    `json:"id"`
	Outcome      IDOutcome `json:"outcome,omitempty"`
	// Reason and Hint are those of the dead letter, or why the record is retried; safe to display.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// IDList is the part of a list that belongs to one organization.
type IDList struct {
	Organization string
	IDs          []string
}

// Pages returns the number of pages of the list.
func (l IDList) Pages() int { return (len(l.IDs) + IDsPerPage - 1) / IDsPerPage }
