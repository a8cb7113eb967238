package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/media"
	"tutti/http/metadata"
	"tutti/http/problem"
	"tutti/http/search"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/report/recordtrace"
)

// Ports are those of the API's surfaces, and what only the console needs.
type Ports struct {
	Indexing indexing.Ports
	Search   search.Ports
	Metadata metadata.Ports
	// Readiness reports the state of the process.
	Readiness system.Readiness
	Validator Validator
	Records   Records
}

// Records finds records.
type Records interface {
	// Locate returns the records with an id, of all organizations. CodeInvalid for an invalid id.
	Locate(ctx context.Context, id string) (recordtrace.Locations, error)
}

// Validator validates analyses without storing them.
type Validator interface {
	// Validate checks a payload against its analysis type. CodeInvalid with Violations if it does not match.
	Validate(ctx context.Context, study, payload string) (datamodel.AnalysisTypeRef, error)
}

// pathConsole is the prefix of every page but the overview, which is at /.
const pathConsole = "/console"

// Surface is the surface of the console: its pages, by what they are about.
type Surface struct {
	*site
	session    sessionPages
	overview   overviewPage
	jobs       jobPages
	letters    letterPages
	records    recordPages
	catalogues cataloguePages
	schemas    schemaPages
	studies    studyPages
}

// site is what all pages share.
type site struct {
	views   views
	assets  assets
	version string
	// base is the base path, auth reports whether authentication is on; both are set by Register.
	base string
	auth bool
	now  clock
}

// The pages about one thing each, with the ports that they need.
type (
	sessionPages struct{ *site }
	overviewPage struct {
		*site
		jobs  *jobPages
		ports Ports
	}
	jobPages struct {
		*site
		ports indexing.Ports
	}
	letterPages struct {
		*site
		ports indexing.Ports
	}
	recordPages struct {
		*site
		ports   indexing.Ports
		records Records
	}
	cataloguePages struct {
		*site
		ports search.Ports
	}
	schemaPages struct {
		*site
		ports     metadata.Ports
		validator Validator
	}
	studyPages struct {
		*site
		ports metadata.Ports
	}
)

// New returns a Surface that uses ports. version is the version of the program.
func New(ports Ports, version string) (*Surface, error) {
	v, err := parseViews()
	if err != nil {
		return nil, err
	}
	a, err := loadAssets()
	if err != nil {
		return nil, err
	}
	shared := &site{views: v, assets: a, version: version}
	s := &Surface{
		site: shared, session: sessionPages{shared}, jobs: jobPages{shared, ports.Indexing}, letters: letterPages{shared, ports.Indexing},
		records: recordPages{shared, ports.Indexing, ports.Records}, catalogues: cataloguePages{shared, ports.Search},
		schemas: schemaPages{shared, ports.Metadata, ports.Validator}, studies: studyPages{shared, ports.Metadata},
	}
	s.overview = overviewPage{shared, &s.jobs, ports}
	return s, nil
}

// QueryPage writes the page on which people write GraphQL queries for a catalogue. It is for search.Surface.ShowQueries.
func (s *Surface) QueryPage(w http.ResponseWriter, r *http.Request, c *core.Catalogue) {
	s.catalogues.queryPage(w, r, c)
}

// OpenAPI implements api.Surface. The document describes the API; pages are not part of it.
func (s *Surface) OpenAPI() []byte { return []byte("{}") }

// Register implements api.Surface.
func (s *Surface) Register(r *api.Router) {
	s.base, s.now = r.BasePath(), r.Now
	s.auth = r.Authenticates()
	r.ShowErrors(s.showError)
	r.Redirect(s.redirectSlash)
	get := func(pattern string, who api.Access, h api.HandlerFunc) {
		r.HandleFunc(http.MethodGet, pattern, s.guard(who, h))
	}
	post := func(pattern string, who api.Access, h api.HandlerFunc) {
		r.HandleFunc(http.MethodPost, pathConsole+pattern, s.guard(who, h))
	}
	r.HandleFunc(http.MethodGet, pathConsole+"/assets/{asset}", s.assets.serve)
	get("/", api.Token(), s.overview.overview)
	get(pathConsole+"/sign-in", api.LenientToken(), s.session.signInPage)
	post("/sign-in", api.Open(), s.session.signIn)
	post("/sign-out", api.Open(), s.session.signOut)

	post("/repositories/{repositoryCode}/index", api.System(), s.overview.indexRepository)
	get(pathConsole+"/jobs", api.Token(), s.jobs.jobs)
	get(pathConsole+"/jobs/{id}", api.Token(), s.jobs.job)
	get(pathConsole+"/jobs/{id}/events", api.Token(), s.jobs.jobEvents)
	post("/jobs/{id}/cancel", api.Token(), s.jobs.cancelJob)

	get(pathConsole+"/dead-letters", api.Token(), s.letters.deadLetters)
	get(pathConsole+"/dead-letters/{id}", api.Token(), s.letters.deadLetter)
	get(pathConsole+"/dead-letters/{id}/discard", api.System(), s.letters.confirmDiscard)
	post("/dead-letters/{id}/discard", api.System(), s.letters.discardDeadLetter)
	post("/dead-letters/{id}/retry", api.Token(), s.letters.retryDeadLetter)
	post("/dead-letters/retry", api.System(), s.letters.retryDeadLetters)

	get(pathConsole+"/records", api.Token(), s.records.record)
	post("/records/index", api.Token(), s.records.indexRecord)

	get(pathConsole+"/catalogues", api.OptionalToken(), s.catalogues.catalogues)
	get(pathConsole+"/catalogues/{id}", api.OptionalToken(), s.catalogues.catalogue)
	get(pathConsole+"/catalogues/{id}/explore", api.OptionalToken(), s.catalogues.explore)
	get(pathConsole+"/catalogues/{id}/document", api.OptionalToken(), s.catalogues.document)
	post("/catalogues/{id}/download", api.OptionalToken(), s.catalogues.download)
	post("/catalogues/{id}/graphql", api.OptionalToken(), s.catalogues.executeQuery)

	get(pathConsole+"/schemas", api.Token(), s.schemas.schemas)
	get(pathConsole+"/schemas/{name}", api.Token(), s.schemas.schema)
	post("/schemas", api.System(), s.schemas.registerType)
	post("/schemas/{name}/try", api.Token(), s.schemas.tryPayload)

	get(pathConsole+"/studies", api.Token(), s.studies.studies)
	post("/studies", api.System(), s.studies.createStudy)
	get(pathConsole+"/studies/{study}", api.Token(), s.studies.study)
	post("/studies/{study}/submit", api.WriterOf("study"), s.studies.submit)
	post("/studies/{study}/analyses/{id}/publish", api.WriterOf("study"), s.studies.setState(datamodel.StatePublished, "published"))
	post("/studies/{study}/analyses/{id}/unpublish", api.WriterOf("study"), s.studies.setState(datamodel.StateUnpublished, "unpublished"))
	get(pathConsole+"/studies/{study}/analyses/{id}/suppress", api.WriterOf("study"), s.studies.confirmSuppress)
	post("/studies/{study}/analyses/{id}/suppress", api.WriterOf("study"), s.studies.setState(datamodel.StateSuppressed, "suppressed"))

	get(pathConsole+"/*", api.Open(), missing)
}

// tracePath returns the path of the trace of a record.
func (s *site) tracePath(repository, organization, id string) string {
	return s.link("records") + "?" + url.Values{"repository": {repository}, "organization": {organization}, "id": {id}}.Encode()
}

// missing serves the paths below /console without a page.
func missing(http.ResponseWriter, *http.Request) error {
	return &core.Error{Code: core.CodeNotFound, Message: "there is no such page", Hint: "use the navigation to find what you are looking for"}
}

// redirectSlash redirects the base path to the overview.
func (s *site) redirectSlash(w http.ResponseWriter, r *http.Request) bool {
	if s.base == "" || r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.EscapedPath() != s.base {
		return false
	}
	http.Redirect(w, r, s.base+"/", http.StatusPermanentRedirect)
	return true
}

// isPage reports whether a request is for a page.
func (s *site) isPage(r *http.Request) bool {
	if r.Context().Value(pageKey{}) != nil {
		return true
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), s.base)
	return ok && (path == "/" || path == pathConsole || strings.HasPrefix(path, pathConsole+"/"))
}

// link returns the path of a page from its escaped segments, with the base path.
func (s *site) link(segments ...string) string {
	var b strings.Builder
	b.WriteString(s.base + pathConsole)
	for _, segment := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(segment))
	}
	return b.String()
}

// see redirects to a page after an action, which says what was done.
func (s *site) see(w http.ResponseWriter, path, notice string) {
	if notice != "" {
		path += "?" + url.Values{"notice": {notice}}.Encode()
	}
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
}

// showError implements api.ErrorPage. Scripts, which prefer JSON, get the problem itself.
func (s *site) showError(w http.ResponseWriter, r *http.Request, p problem.Problem) bool {
	if !s.isPage(r) || media.Negotiate(r.Header.Values("Accept"), media.HTML, media.JSON) == media.JSON {
		return false
	}
	setPolicy(w.Header())
	s.render(w, r, p.Status, "error", page{Title: p.Title, Content: newErrorView(s, r, p)})
	return true
}
