package idlist

// Bounds of a list of ids that one job indexes.
const (
	// MaxIDs is the largest number of distinct ids, MaxOrganizations that of their organizations.
	MaxIDs           = 100_000
	MaxOrganizations = 1000
	// MaxOpen is the largest number of lists of a repository whose jobs have not ended: together they have at most ten million ids.
	MaxOpen = 100
	// IDsPerPage is the number of ids of a page of a list: with their outcomes, any 100 fit into one message of the queue.
	IDsPerPage = 100
	// MaxOutcomeText bounds each text of an outcome, in bytes.
	MaxOutcomeText = 300
)

// Outcome is what became of one id of a list.
type Outcome string

// Outcomes of an id. An id without one has not been processed yet.
const (
	Indexed Outcome = "indexed"
	// Removed: the repository has no record with the id to index, and the index has no document of it; in a list of one organization
	// also a record that belongs to another one.
	Removed Outcome = "removed"
	// Excluded: an exclusion rule applies to the record, which has no documents.
	Excluded Outcome = "excluded"
	// Stale: the index already had a newer version.
	Stale Outcome = "stale"
	// Mismatch: the record belongs to another organization; nothing changed. Only in lists of a whole repository.
	Mismatch     Outcome = "mismatch"
	DeadLettered Outcome = "deadLettered"
	// Retrying: the record could not be fetched or written for now, and has a request of its own, which the queue retries.
	Retrying Outcome = "retrying"
	// Queued and Skipped are outcomes of ids that were not processed, while the job has not ended and after it.
	Queued  Outcome = "queued"
	Skipped Outcome = "skipped"
)

// Settled reports whether the document of the id is in its final state for the job.
func (o Outcome) Settled() bool {
	return o == Indexed || o == Removed || o == Excluded || o == Stale || o == Mismatch || o == DeadLettered
}

// ID is one id of a list, with its outcome.
type ID struct {
	// Organization is empty in a stored page, whose key names it.
	Organization string  `json:"organization,omitempty"`
	ID           string  `json:"id"`
	Outcome      Outcome `json:"outcome,omitempty"`
	// Reason and Hint are those of the dead letter, or why the record is retried; safe to display.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// List is the part of a list that belongs to one organization.
type List struct {
	Organization string
	IDs          []string
}

// Pages returns the number of pages of the list.
func (l List) Pages() int { return (len(l.IDs) + IDsPerPage - 1) / IDsPerPage }
