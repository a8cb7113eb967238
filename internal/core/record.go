package core

// DefaultMaxRecordBytes is the default size limit of a record, in bytes.
const DefaultMaxRecordBytes = 32 << 20

// LongNumber is the number of bytes of the shortest whole number that a double cannot hold, 2^53+1.
const LongNumber = len("9007199254740993")

// Record is one record of an upstream.
type Record struct {
	// ID is the analysisId or the systemId; empty if the record has none.
	ID string
	// Organization is the record's own organization: Song's studyId, Lyric's organization.
	Organization string
	// State is the upstream's name for the record's state, for example PUBLISHED; empty for none.
	State string
	// Indexable reports whether a record in this state belongs in the index.
	Indexable bool
	// Excluded is the exclusion rule because of which the record is not Indexable, nil for none.
	Excluded *Exclusion
	// Reason is why the record is not Indexable, if neither State nor Excluded say it: what follows "the record", safe to display. It is
	// set for a record that was fetched individually.
	Reason string
	// Body holds the record's bytes, one JSON object without line feeds. Inside a page callback it is valid only until the
	// callback returns.
	Body []byte
	// Plain reports whether Body has neither raw line feeds nor numbers of LongNumber bytes or more: the parser has seen none. False says
	// nothing.
	Plain bool
	// Shape is the same for records of one client whose Bodies have the same names and JSON kinds in the same order, where a text that is a
	// day (jsontext.IsDay) is a kind of its own. Another record has another number, except by chance, once in 2^64. 0 is unknown.
	Shape uint64
	// Release, if not nil, releases the memory of a large Body that was fetched individually; call it once when Body is no longer
	// used.
	Release func()
	// TooLarge is set for a record over the size limit, whose Body is nil: the part for the dead letter.
	TooLarge *DeadLetterDocument
	// Part is set, and Indexable false, for a record that is part of another one and has no document of its own.
	Part *Part
	// HasRepositories reports whether the record has a top-level member repositories, which the document's own replaces.
	HasRepositories bool
}

// Exclusion is the exclusion rule that applies to a record.
type Exclusion struct {
	// List is the list of the repository's exclude that contains ID, such as donors.
	List string `json:"list"`
	ID   string `json:"id"`
}

// PageInfo is the metadata of a page beside its records.
type PageInfo struct {
	// Rows is the number of rows of the page, Total the current number of rows of the whole list.
	Rows  int
	Total int
}
