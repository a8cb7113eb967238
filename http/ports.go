package http

import (
	"context"
	"time"

	"tutti/internal/core"
)

// Ports is everything that a Handler needs; each member is required.
type Ports struct {
	Ingest        Ingest
	Notifications Notifications
	Jobs          Jobs
	JobEvents     JobEvents
	DeadLetters   DeadLetters
	Retries       Retries
	Readiness     Readiness
	AnalysisTypes AnalysisTypes
	Studies       Studies
	Analyses      Analyses
	Submissions   Submissions
	Keys          Keys
	Catalogues    Catalogues
	GraphQL       GraphQL
	Downloads     Downloads
	// Pauses says why jobs wait; nil for none that do.
	Pauses Pauses
	// Authenticator verifies tokens; nil turns authentication off.
	Authenticator Authenticator
}

// Catalogues returns the catalogues that can be searched.
type Catalogues interface {
	// Catalogues returns all catalogues as they are now, at once and never nil: the same pointer as long as nothing changed;
	// inside a new set, the same *Catalogue for what did not change.
	Catalogues() *core.CatalogueSet
}

// GraphQL executes GraphQL operations on the documents of a catalogue (CONTRACT section 5).
type GraphQL interface {
	// Execute answers one operation on the catalogue of an id for a caller, the zero Principal without
	// authentication. What is wrong with the operation is in the response. The end of ctx ends the work on it. CodeNotFound when there is
	// no such catalogue or it has failed, CodeUnavailable or CodeOverloaded when nothing can be executed now.
	Execute(ctx context.Context, catalogueID string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error)
}

// Downloads writes the documents of a catalogue as files (CONTRACT section 5).
type Downloads interface {
	// Download calls begin and writes the file to the writer that begin returns; the end of ctx, or of the client, ends it with an error.
	// CodeInvalid for params at fault, CodeNotFound when there is no such catalogue or it has failed, CodeForbidden when it
	// offers no downloads, CodeUnavailable or CodeOverloaded when they cannot be read now.
	Download(ctx context.Context, catalogueID string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error
}

// AnalysisTypes stores the analysis types (CONTRACT section 7). Each method returns the bytes of a JSON response body, which the
// caller must not change.
type AnalysisTypes interface {
	// Register takes the body of a registration and returns the new version, rendered. CodeInvalid with an ErrorID and
	// Violations when the body is at fault.
	Register(ctx context.Context, body []byte) ([]byte, error)
	// Type returns the body of one version piece by piece, so that a large one is never held as a whole; version 0 returns the
	// latest with all versions beside it. unrendered leaves the base schema out. each must not change the bytes; an error of
	// it ends the call and is returned. CodeNotFound when there is none.
	Type(ctx context.Context, name string, version int, unrendered bool, each func(piece []byte) error) error
	// List returns the body of a page of the analysis types, as Type does. hideSchema leaves their schemas out.
	List(ctx context.Context, query core.AnalysisTypeQuery, hideSchema, unrendered bool, each func(piece []byte) error) error
	// MetaSchema returns the JSON Schema of the body of a registration.
	MetaSchema() []byte
}

// Studies are those of the built-in metadata repository.
type Studies interface {
	// Studies returns the ids of all studies in order.
	Studies(ctx context.Context) ([]string, error)
	// Study returns one study, CodeNotFound when there is none.
	Study(ctx context.Context, id string) (core.Study, error)
	// CreateStudy adds a study; CodeInvalid for a bad id, CodeConflict when it is there already.
	CreateStudy(ctx context.Context, s core.Study) error
}

// Analyses reads those of the built-in metadata repository.
type Analyses interface {
	// Analysis returns one analysis in any state, CodeNotFound when the study has none of that id.
	Analysis(ctx context.Context, study, id string) (core.Analysis, error)
	// Page calls each for at most limit analyses of a study in some states, from a row offset, in the order of their
	// submission; limit 0 means all. An Analysis is valid until each returns. CodeNotFound for an unknown study.
	Page(ctx context.Context, study string, states []core.AnalysisState, offset, limit int,
		each func(core.Analysis) error) (core.PageInfo, error)
}

// Submissions changes analyses. Each method returns after the change and its event are durable. Errors: CodeInvalid with
// an ErrorID and Violations for what is not valid, CodeNotFound for an unknown study or analysis, CodeConflict with an
// ErrorID for what contradicts the state of the repository.
type Submissions interface {
	// Submit adds an analysis and returns its id. allowDuplicates takes files whose MD5 the study has already.
	Submit(ctx context.Context, study string, body []byte, allowDuplicates bool) (string, error)
	// Replace puts body in the place of an analysis, whose id and state stay.
	Replace(ctx context.Context, study, id string, body []byte) error
	// Merge merges a JSON merge patch (RFC 7396) into an analysis.
	Merge(ctx context.Context, study, id string, patch []byte) error
	// SetState publishes, unpublishes or suppresses an analysis.
	SetState(ctx context.Context, study, id string, state core.AnalysisState) error
}

// Keys manages API keys.
type Keys interface {
	// Create makes a key and returns it with the whole text that its holder shows, which is not kept. expires is zero for
	// never. CodeInvalid for a bad name, scope or time.
	Create(ctx context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error)
	// List returns all keys, the last made first.
	List(ctx context.Context) ([]core.APIKey, error)
	// Revoke ends a key; CodeNotFound when there is none. A key that was revoked before stays so.
	Revoke(ctx context.Context, id string) (core.APIKey, error)
}

// Authenticator verifies bearer tokens and names scopes.
type Authenticator interface {
	// Authenticate returns CodeUnauthenticated, with a message that is safe to show, for an invalid token, and
	// CodeUnavailable when it cannot be checked now.
	Authenticate(ctx context.Context, token string) (core.Principal, error)
	// SystemScope, WriteScope and ReadScope return the names of the scopes that grant everything, and writing and reading in an
	// organization.
	SystemScope() string
	WriteScope(organization string) string
	ReadScope(organization string) string
}

// Notifications accepts the webhook notifications of repositories.
type Notifications interface {
	// Notify takes the body of a notification for a repository, one event or an array of them, with the value of
	// X-Signature-256, "" when there is none. It returns after the queue has stored every Request and dead letter. Errors:
	// CodeInvalid for a body that is no JSON object or array of objects, CodeNotFound for an unknown repository,
	// CodeUnauthenticated for a signature that is missing or wrong, CodeOverloaded or CodeUnavailable from the queue.
	Notify(ctx context.Context, repository string, body []byte, signature, requestID string) (core.NotificationResult, error)
	// Signed reports whether the notifications of a repository must be signed; false also for an unknown one.
	Signed(repository string) bool
}

// JobEvents watches jobs.
type JobEvents interface {
	// Watch calls each for a job and its organizations as they are, in the order of their revisions, then once with
	// neither, and then for every change, until each returns an error, which is returned, ctx ends, or the job is removed,
	// which returns nil. CodeNotFound when there is no such job.
	Watch(ctx context.Context, id string, each func(core.JobChange) error) error
}

// DeadLetters reads and deletes dead letters.
type DeadLetters interface {
	// List returns at most limit letters, the last written first, and the cursor of the next ones, "" after the last. An
	// empty repository or reason means any; a cursor that List did not give is CodeInvalid.
	List(ctx context.Context, repository, reason string, limit int, cursor string) ([]core.DeadLetter, string, error)
	// Get returns one letter, CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.DeadLetter, error)
	// Delete discards one letter, CodeNotFound when there is none.
	Delete(ctx context.Context, id string) error
}

// Retries retries dead letters. A retry fetches the record again; the letter is deleted when it succeeds.
type Retries interface {
	// Retry publishes the Request of one letter again; CodeNotFound when there is none, CodeConflict when the letter
	// cannot be retried, with a hint that says what to do instead.
	Retry(ctx context.Context, id, requestID string) (core.DeadLetter, error)
	// RetryAll retries every letter of a repository and of a reason, "" for any, that exists when it begins, and returns
	// how many were retried and how many cannot be. An error says that the queue stopped taking them; those that were
	// retried until then stay so.
	RetryAll(ctx context.Context, repository, reason, requestID string) (retried, refused int, err error)
}

// Ingest takes triggers. Both methods return nil only after the queue has stored the Request; both return CodeInvalid,
// CodeNotFound for an unknown repository, and CodeOverloaded or CodeUnavailable when the queue refuses.
type Ingest interface {
	// Record asks for one record to be indexed or removed and returns the alias it is written to.
	Record(ctx context.Context, kind core.Kind, repository, organization, id, requestID string) (indexName string, err error)
	// Run asks for an organization or a repository and returns the job that does it, which may be one queued before.
	Run(ctx context.Context, scope core.Scope, repository, organization string, force bool,
		cause core.Cause, requestID string) (core.Job, error)
}

// Jobs reads and cancels jobs.
type Jobs interface {
	// List returns at most limit jobs, newest first, and the cursor of the next ones, "" after the last. An empty
	// repository or state means any; a cursor that List did not give is CodeInvalid.
	List(ctx context.Context, repository string, state core.JobState, limit int, cursor string) ([]core.Job, string, error)
	// Get returns one job, CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.Job, error)
	// Organizations returns the organizations of a job that are known so far.
	Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error)
	// Cancel ends a job and returns it as it is then; CodeConflict when it had ended before, CodeNotFound when there is
	// none.
	Cancel(ctx context.Context, id string) (core.Job, error)
}

// Readiness reports whether the process can do its work.
type Readiness interface {
	// Health probes every component. It is bounded by ctx and never fails: a component that does not answer is down.
	Health(ctx context.Context) Health
}

// Pauses lists the repositories whose consumers are paused. It does not block.
type Pauses interface {
	Paused() []Pause
}

// ComponentState is the state of a part of the process.
type ComponentState string

// States of a component.
const (
	ComponentUp       ComponentState = "up"
	ComponentDegraded ComponentState = "degraded"
	ComponentDown     ComponentState = "down"
)

// Health is the part of GET /ready that does not concern the catalogues.
type Health struct {
	// Components are the parts by name: queue, index, store. A queue or store that is down makes /ready answer 503.
	Components map[string]ComponentState
	// Reasons says in words, which are safe to display, why components are not up.
	Reasons []string
	// Paused lists the repositories whose consumers are paused.
	Paused []Pause
}

// Pause is a repository whose consumers are paused, and why. Reason is safe to display.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}
