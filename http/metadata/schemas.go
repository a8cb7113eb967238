package metadata

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

const (
	defaultAnalysisTypes = 20
	maxAnalysisTypes     = 1000
	// maxListed is the largest number of names or versions in a filter.
	maxListed = 1000
	// maxNumber bounds offsets and versions: the databases store them in 32 bits.
	maxNumber = math.MaxInt32
)

// typeName matches the names that an analysis type can have.
var typeName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// analysisTypes handles /schemas.
type analysisTypes struct{ port AnalysisTypes }

func (a analysisTypes) register(r *api.Router) {
	r.Handle(http.MethodPost, "/schemas", a.add, api.LenientParams(), api.System())
	r.Handle(http.MethodGet, "/schemas", a.list, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, "/schemas/registration", a.metaSchema, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, "/schemas/{name}", a.get, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, "/schemas/{name}/versions/{version}", a.getVersion, api.LenientParams(), api.Token())
}

func (a analysisTypes) add(w http.ResponseWriter, r *http.Request) error {
	body, err := api.ReadJSON(r)
	if err != nil {
		return err
	}
	registered, err := a.port.Register(r.Context(), body)
	if err != nil {
		return fmt.Errorf("registering an analysis type: %w", err)
	}
	api.WriteEncoded(w, registered)
	return nil
}

func (a analysisTypes) metaSchema(w http.ResponseWriter, _ *http.Request) error {
	api.WriteEncoded(w, a.port.MetaSchema())
	return nil
}

// get writes one version, or without a version the latest together with all versions.
func (a analysisTypes) get(w http.ResponseWriter, r *http.Request) error {
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return err
	}
	version, err := q.Integer("version", 1, maxNumber, 0)
	if err != nil {
		return err
	}
	return a.answer(w, r, version)
}

func (a analysisTypes) getVersion(w http.ResponseWriter, r *http.Request) error {
	given, err := api.PathParam(r, "version", "version")
	if err != nil {
		return err
	}
	version, err := versionOf("version", given)
	if err != nil {
		return err
	}
	return a.answer(w, r, version)
}

func (a analysisTypes) answer(w http.ResponseWriter, r *http.Request, version int) error {
	name, err := api.PathParam(r, "name", "name")
	if err != nil {
		return err
	}
	if !typeName.MatchString(name) {
		return core.NewError(core.CodeInvalid, fmt.Sprintf(
			"the name of an analysis type has only letters, digits, dots, hyphens and underscores, unlike %s", api.QuoteValue(name)))
	}
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return err
	}
	unrendered, err := q.LenientBoolean("unrenderedOnly")
	if err != nil {
		return err
	}
	stream := api.NewListStream(w, r, media.JSON, "")
	err = a.port.Type(r.Context(), name, version, unrendered, stream.Add)
	if err != nil {
		return stream.Fail(fmt.Errorf("reading an analysis type: %w", err))
	}
	return stream.End("")
}

func (a analysisTypes) list(w http.ResponseWriter, r *http.Request) error {
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return err
	}
	hideSchema, err := q.LenientBoolean("hideSchema")
	if err != nil {
		return err
	}
	unrendered, err := q.LenientBoolean("unrenderedOnly")
	if err != nil {
		return err
	}
	query, err := analysisTypeQueryOf(q)
	if err != nil {
		return err
	}
	stream := api.NewListStream(w, r, media.JSON, "")
	err = a.port.List(r.Context(), query, hideSchema, unrendered, stream.Add)
	if err != nil {
		return stream.Fail(fmt.Errorf("listing analysis types: %w", err))
	}
	return stream.End("")
}

// analysisTypeQueryOf parses the filter and the order of a list of analysis types; by default newest first.
func analysisTypeQueryOf(q api.Query) (datamodel.AnalysisTypeQuery, error) {
	var a datamodel.AnalysisTypeQuery
	var err error
	if a.Limit, err = q.Integer("limit", 0, maxNumber, defaultAnalysisTypes); err != nil {
		return a, err
	}
	a.Limit = min(a.Limit, maxAnalysisTypes)
	a.CountOnly = a.Limit == 0
	if a.Offset, err = q.Integer("offset", 0, maxNumber, 0); err != nil {
		return a, err
	}
	if a.Names, err = q.List("names", maxListed); err != nil {
		return a, err
	}
	for _, name := range a.Names {
		if err := core.ValidID("query parameter names", name); err != nil {
			return a, err
		}
	}
	versions, err := q.List("versions", maxListed)
	if err != nil {
		return a, err
	}
	for _, given := range versions {
		version, err := versionOf("query parameter versions", given)
		if err != nil {
			return a, err
		}
		a.Versions = append(a.Versions, version)
	}
	if a.Sort, err = q.Choices("sort", "version", "name"); err != nil {
		return a, err
	}
	order, err := q.Choice("sortOrder", "desc", "asc", "desc")
	// Without Sort the order is newest first.
	a.Descending = (order == "desc") == (len(a.Sort) > 0)
	return a, err
}

// versionOf reads a version; what names it in the message.
func versionOf(what, given string) (int, error) {
	version, err := strconv.Atoi(given)
	if err != nil || version < 1 || version > maxNumber {
		return 0, core.NewError(core.CodeInvalid,
			fmt.Sprintf("%s must be a whole number from 1 to %d, not %s", what, maxNumber, api.QuoteValue(given)))
	}
	return version, nil
}
