package metadata

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// Ports is what a Surface needs; each member but Payloads is required.
type Ports struct {
	AnalysisTypes AnalysisTypes
	Studies       Studies
	Analyses      Analyses
	Submissions   Submissions
	Files         Files
	Entities      Entities
	Exports       Exports
	// Payloads bounds the memory for processing submissions over 64 KiB. A request waits for up to 30 s and then fails with 503.
	// Default: no bound.
	Payloads core.Memory
	// NotIndexed says why no index gets the analyses, empty if one does.
	NotIndexed string
}

// AnalysisTypes stores the analysis types (CONTRACT section 7). Each method returns the bytes of a JSON response body, which the
// caller must not change.
type AnalysisTypes interface {
	// Register registers an analysis type by the body of a registration and returns the new version, rendered. CodeInvalid with an
	// ErrorID and Violations for an invalid body.
	Register(ctx context.Context, body []byte) ([]byte, error)
	// Type calls each with the pieces of the body of one version, so that a large body is never in memory as a whole. Version 0 is
	// the latest version together with all versions. unrendered omits the base schema. each must not change the bytes; its error ends
	// the call and is returned. CodeNotFound when there is none.
	Type(ctx context.Context, name string, version int, unrendered bool, each func(piece []byte) error) error
	// List calls each with the pieces of the body of a page of analysis types. hideSchema omits their schemas.
	List(ctx context.Context, query datamodel.AnalysisTypeQuery, hideSchema, unrendered bool, each func(piece []byte) error) error
	// MetaSchema returns the JSON Schema of the body of a registration.
	MetaSchema() []byte
}

// Studies reads and creates the studies of the built-in metadata repository.
type Studies interface {
	// Studies returns the ids of all studies in order.
	Studies(ctx context.Context) ([]string, error)
	// Study returns one study, CodeNotFound when there is none.
	Study(ctx context.Context, id string) (datamodel.Study, error)
	// CreateStudy adds a study; CodeInvalid for an invalid id, CodeConflict when it already exists.
	CreateStudy(ctx context.Context, s datamodel.Study) error
}

// Analyses reads the analyses of the built-in metadata repository.
type Analyses interface {
	// Analysis returns one analysis in any state, CodeNotFound when the study has none of that id.
	Analysis(ctx context.Context, study, id string) (datamodel.Analysis, error)
	// Page calls each for at most limit analyses of a study in some states, from a row offset, in the order of their
	// submission; limit 0 means all. An Analysis is valid until each returns. CodeNotFound for an unknown study.
	Page(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int,
		each func(datamodel.Analysis) error) (core.PageInfo, error)
	// SearchIDs calls each for the analyses of a study in some states with matching ids. An Analysis is valid until each returns.
	// CodeNotFound for an unknown study, CodeInvalid for a bad expression.
	SearchIDs(ctx context.Context, study string, states []datamodel.AnalysisState, search datamodel.IDSearch, each func(datamodel.Analysis) error) error
}

// Files reads and changes files by their object ids. CodeNotFound with an ErrorID for an unknown study or file.
type Files interface {
	// File returns a file as a JSON object, and the state of its analysis.
	File(ctx context.Context, study, objectID string) (json.RawMessage, datamodel.AnalysisState, error)
	// ChangeFile changes a file by a body; CodeInvalid for a bad body and for a change that the state of the analysis does not allow.
	ChangeFile(ctx context.Context, study, objectID string, body []byte) (datamodel.FileChange, error)
	// DeleteFiles deletes all files or none.
	DeleteFiles(ctx context.Context, study string, objectIDs []string) error
}

// Entities lists files of all studies.
type Entities interface {
	// Entity returns one file; CodeNotFound when there is none.
	Entity(ctx context.Context, objectID string) (datamodel.Entity, error)
	// Entities returns a page of files, and the number of all that match.
	Entities(ctx context.Context, q datamodel.EntityQuery) ([]datamodel.Entity, int, error)
}

// Exports returns analyses as payloads that could be submitted again.
type Exports interface {
	// FindAnalysis returns the study and the state of an analysis, without its Body; CodeNotFound when there is none.
	FindAnalysis(ctx context.Context, id string) (datamodel.Analysis, error)
	// ExportAnalysis returns an analysis with the payload as its Body; CodeNotFound when there is none.
	ExportAnalysis(ctx context.Context, id string) (datamodel.Analysis, error)
	// ExportStudy calls each for all analyses of a study, with payloads as Body. An Analysis is valid until each returns.
	// CodeNotFound for an unknown study.
	ExportStudy(ctx context.Context, study string, each func(datamodel.Analysis) error) error
}

// Submissions changes analyses. Each method returns after the change and its event are durable. Errors: CodeInvalid with an ErrorID
// and Violations for an invalid body, CodeNotFound for an unknown study or analysis, CodeConflict with an ErrorID for a change that
// contradicts the state of the repository.
type Submissions interface {
	// Submit adds an analysis and returns its id. allowDuplicates accepts files whose MD5 sum the study already has.
	Submit(ctx context.Context, study string, body []byte, allowDuplicates bool) (string, error)
	// Replace replaces an analysis by body, and keeps its id and state.
	Replace(ctx context.Context, study, id string, body []byte) error
	// Merge merges a JSON merge patch (RFC 7396) into an analysis.
	Merge(ctx context.Context, study, id string, patch []byte) error
	// SetState publishes, unpublishes or suppresses an analysis. With ignoreUndefinedMD5 it also publishes if the storage does not
	// know the MD5 sum of a file.
	SetState(ctx context.Context, study, id string, state datamodel.AnalysisState, ignoreUndefinedMD5 bool) error
}
