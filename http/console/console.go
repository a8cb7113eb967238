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

// Surface is the surface of the console.
type Surface struct {
	ports   Ports
	views   views
	assets  assets
	version string
	// base is the base path, auth reports whether authentication is on; both are set by Register.
	base string
	auth bool
	now  clock
}

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
	return &Surface{ports: ports, views: v, assets: a, version: version}, nil
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
	get("/", api.Token(), s.overview)
	get(pathConsole+"/sign-in", api.LenientToken(), s.signInPage)
	post("/sign-in", api.Open(), s.signIn)
	post("/sign-out", api.Open(), s.signOut)

	post("/repositories/{repositoryCode}/index", api.System(), s.indexRepository)
	get(pathConsole+"/jobs", api.Token(), s.jobs)
	get(pathConsole+"/jobs/{id}", api.Token(), s.job)
	get(pathConsole+"/jobs/{id}/events", api.Token(), s.jobEvents)
	post("/jobs/{id}/cancel", api.Token(), s.cancelJob)

	get(pathConsole+"/dead-letters", api.Token(), s.deadLetters)
	get(pathConsole+"/dead-letters/{id}", api.Token(), s.deadLetter)
	get(pathConsole+"/dead-letters/{id}/discard", api.System(), s.confirmDiscard)
	post("/dead-letters/{id}/discard", api.System(), s.discardDeadLetter)
	post("/dead-letters/{id}/retry", api.Token(), s.retryDeadLetter)
	post("/dead-letters/retry", api.System(), s.retryDeadLetters)

	get(pathConsole+"/records", api.Token(), s.record)
	post("/records/index", api.Token(), s.indexRecord)

	get(pathConsole+"/catalogues", api.OptionalToken(), s.catalogues)
	get(pathConsole+"/catalogues/{id}", api.OptionalToken(), s.catalogue)
	get(pathConsole+"/catalogues/{id}/explore", api.OptionalToken(), s.explore)
	post("/catalogues/{id}/download", api.OptionalToken(), s.download)
	post("/catalogues/{id}/graphql", api.OptionalToken(), s.executeQuery)

	get(pathConsole+"/schemas", api.Token(), s.schemas)
	get(pathConsole+"/schemas/{name}", api.Token(), s.schema)
	post("/schemas", api.System(), s.registerType)
	post("/schemas/{name}/try", api.Token(), s.tryPayload)

	get(pathConsole+"/studies", api.Token(), s.studies)
	post("/studies", api.System(), s.createStudy)
	get(pathConsole+"/studies/{study}", api.Token(), s.study)
	post("/studies/{study}/submit", api.WriterOf("study"), s.submit)
	post("/studies/{study}/analyses/{id}/publish", api.WriterOf("study"), s.setState(datamodel.StatePublished, "published"))
	post("/studies/{study}/analyses/{id}/unpublish", api.WriterOf("study"), s.setState(datamodel.StateUnpublished, "unpublished"))
	get(pathConsole+"/studies/{study}/analyses/{id}/suppress", api.WriterOf("study"), s.confirmSuppress)
	post("/studies/{study}/analyses/{id}/suppress", api.WriterOf("study"), s.setState(datamodel.StateSuppressed, "suppressed"))

	get(pathConsole+"/*", api.Open(), s.missing)
}

// missing serves the paths below /console without a page.
func (s *Surface) missing(http.ResponseWriter, *http.Request) error {
	return &core.Error{Code: core.CodeNotFound, Message: "there is no such page", Hint: "use the navigation to find what you are looking for"}
}

// redirectSlash redirects the base path to the overview.
func (s *Surface) redirectSlash(w http.ResponseWriter, r *http.Request) bool {
	if s.base == "" || r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.EscapedPath() != s.base {
		return false
	}
	http.Redirect(w, r, s.base+"/", http.StatusPermanentRedirect)
	return true
}

// isPage reports whether a request is for a page.
func (s *Surface) isPage(r *http.Request) bool {
	if r.Context().Value(pageKey{}) != nil {
		return true
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), s.base)
	return ok && (path == "/" || path == pathConsole || strings.HasPrefix(path, pathConsole+"/"))
}

// link returns the path of a page from its escaped segments, with the base path.
func (s *Surface) link(segments ...string) string {
	var b strings.Builder
	b.WriteString(s.base + pathConsole)
	for _, segment := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(segment))
	}
	return b.String()
}

// see redirects to a page after an action, which says what was done.
func (s *Surface) see(w http.ResponseWriter, path, notice string) {
	if notice != "" {
		path += "?" + url.Values{"notice": {notice}}.Encode()
	}
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
}

// showError implements api.ErrorPage. Scripts, which prefer JSON, get the problem itself.
func (s *Surface) showError(w http.ResponseWriter, r *http.Request, p problem.Problem) bool {
	if !s.isPage(r) || media.Negotiate(r.Header.Values("Accept"), media.HTML, media.JSON) == media.JSON {
		return false
	}
	setPolicy(w.Header())
	s.render(w, r, p.Status, "error", page{Title: p.Title, Content: newErrorView(s, r, p)})
	return true
}
