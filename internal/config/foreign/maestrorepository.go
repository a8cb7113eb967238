package foreign

import (
	"strings"

	"tutti/internal/base/setting"
)

// maestroKey maps a variable of Maestro's repositories to the path of tutti's key.
type maestroKey struct {
	name string
	path []string
}

// maestroKeys returns the variables of a repository that are copied unchanged, for both versions of Maestro.
func maestroKeys() []maestroKey {
	return []maestroKey{
		{"CODE", []string{"code"}},
		{"NAME", []string{"name"}},
		{"SONGORGANIZATION", []string{"organization"}},
		{"ORGANIZATION", []string{"organization"}},
		{"SONGCOUNTRY", []string{"country"}},
		{"COUNTRY", []string{"country"}},
		{"INDEXNAME", []string{"indexName"}},
		{"PAGINATIONSIZE", []string{"pageSize"}},
		{"SONGINDEXABLESTUDYSTATES", []string{"song", "states"}},
		{"LYRICCATEGORYID", []string{"lyric", "categoryId"}},
		{"LYRICVALIDDATAONLY", []string{"lyric", "validOnly"}},
	}
}

// maestroRepository is one of Maestro's repositories being converted to a node.
type maestroRepository struct {
	// variables are its unused variables.
	variables map[string]setting.EnvVariable
	node      *setting.Node
	url       setting.EnvVariable
	kind      string
	// old is set for Maestro 4.
	old bool
}

// maestroShared holds Maestro 4's settings for all repositories.
type maestroShared struct {
	alias, fileAlias, states, limit setting.EnvVariable
	// perFile is set when it writes one document per file, perAnalysis when it writes one per analysis.
	perFile, perAnalysis bool
}

// The aliases of Maestro 4's indices of analyses and of files.
const (
	defaultMaestroAlias     = "analysis_centric"
	defaultMaestroFileAlias = "file_centric"
)

func (m *maestro) takeShared() maestroShared {
	var s maestroShared
	s.alias, _ = m.take("ELASTICSEARCHINDEXESANALYSISCENTRICALIAS")
	s.states, _ = m.takeFirst("SONGINDEXABLESTUDYSTATESCSV", "SONGINDEXABLESTUDYSTATES")
	s.limit, _ = m.take("SONGPAGELIMIT")
	s.fileAlias, _ = m.take("ELASTICSEARCHINDEXESFILECENTRICALIAS")
	analyses, _ := m.switched("ELASTICSEARCHINDEXESANALYSISCENTRICENABLED")
	files, given := m.switched("ELASTICSEARCHINDEXESFILECENTRICENABLED")
	// Maestro 4 writes files by default.
	s.perFile, s.perAnalysis = files || !given && !analyses, analyses
	for _, name := range []string{"ANALYSISCENTRICNAME", "FILECENTRICNAME"} {
		m.take("ELASTICSEARCHINDEXES" + name)
	}
	return s
}

// takeRepositories converts the whole list, or ignores it when tutti has its own list: two lists cannot be merged by index.
func (m *maestro) takeRepositories() {
	shared := m.takeShared()
	if len(m.repositories) == 0 {
		return
	}
	if NamesRepository(m.root) {
		m.warn("%s… are ignored: repositories are configured in the file or with %sREPOSITORIES_…", repositoriesPrefix, setting.EnvPrefix)
		m.repositories = nil
		return
	}
	list := &setting.Node{Kind: setting.KindList, Source: "variables " + repositoriesPrefix + "…"}
	for i := 0; ; i++ {
		r := maestroRepository{variables: m.repositories[i], kind: "song"}
		var ok bool
		if r.url, ok = takeFrom(r.variables, "BASEURL"); !ok {
			r.url, r.old = takeFrom(r.variables, "URL")
		}
		if !ok && !r.old {
			break
		}
		list.Items = append(list.Items, m.repository(r, shared))
	}
	for _, known := range m.order {
		if i, rest, ok := repositoryVariable(known); ok && i >= len(list.Items) {
			if v, left := takeFrom(m.repositories[i], rest); left {
				m.warn("%s is ignored: repository %d has no URL", v.Name, len(list.Items))
			}
		}
	}
	if len(list.Items) > 0 {
		m.root.Set("repositories", list)
	}
}

// NamesRepository reports whether root has a list of repositories, or an invalid value of that key.
func NamesRepository(root *setting.Node) bool {
	given := root.Member("repositories")
	return given != nil && (given.Kind != setting.KindList || len(given.Items) > 0)
}

// repository converts a repository to a node.
func (m *maestro) repository(r maestroRepository, shared maestroShared) *setting.Node {
	r.node = setting.NewObject("variable " + r.url.Name)
	kind := setting.EnvVariable{Name: r.url.Name, Value: r.kind}
	if v, ok := takeFrom(r.variables, "TYPE"); ok {
		kind = setting.EnvVariable{Name: v.Name, Value: strings.ToLower(v.Value)}
		r.kind = kind.Value
	}
	fillGiven(r.node, kind, "type")
	r.node.Fill(r.url, withScheme(r.url.Value), "url")
	for _, k := range maestroKeys() {
		if k.path[0] == "lyric" && r.kind != "lyric" || k.path[0] == "song" && r.kind != "song" {
			continue
		}
		if v, ok := takeFrom(r.variables, k.name); ok {
			fillGiven(r.node, v, k.path...)
		}
	}
	if r.kind == "song" {
		fillGiven(r.node, shared.states, "song", "states")
	}
	fillGiven(r.node, shared.limit, "pageSize")
	m.documents(r, shared)
	m.topic(r)
	return r.node
}

func fillGiven(n *setting.Node, v setting.EnvVariable, path ...string) {
	if v.Name != "" {
		n.Fill(v, v.Value, path...)
	}
}

// documents sets the kind of documents of a repository, and the index of one of Maestro 4.
func (m *maestro) documents(r maestroRepository, shared maestroShared) {
	kind := setting.EnvVariable{}
	if r.old && shared.perFile {
		kind = setting.EnvVariable{Name: r.url.Name, Value: "file-v4"}
	}
	if v, ok := takeFrom(r.variables, "SONGANALYSISCENTRICENABLED"); ok {
		kind = v
		if on, known := setting.ParseBool(v.Value); known && on {
			kind.Value = "analysis"
		} else if known {
			kind.Value = "file"
		}
	}
	if v, ok := takeFrom(r.variables, "SONGINDEXINGMODE"); ok {
		kind = setting.EnvVariable{Name: v.Name, Value: strings.ToLower(v.Value)}
	}
	if r.kind != "song" {
		kind = setting.EnvVariable{}
	}
	fillGiven(r.node, kind, "documents")
	if !r.old {
		return
	}
	alias, standard := shared.alias, defaultMaestroAlias
	if shared.perFile {
		alias, standard = shared.fileAlias, defaultMaestroFileAlias
	}
	if alias.Name == "" {
		alias = setting.EnvVariable{Name: r.url.Name, Value: standard}
	}
	fillGiven(r.node, alias, "indexName")
	if shared.perFile && shared.perAnalysis {
		m.warn("repository %s: Maestro writes documents of files and of analyses, tutti only those of files, to %s",
			textOf(r.node.Member("code")), textOf(r.node.Member("indexName")))
	}
}

func textOf(n *setting.Node) string {
	if n == nil {
		return "(without a name)"
	}
	return n.Text
}
