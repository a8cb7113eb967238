package migrate

import "tutti/internal/config"

// inCatalogue is the note of a key that tutti reads in a catalogue's files, but not for all catalogues.
// Notes of several keys.
const (
	inCatalogue = "tutti reads it in the files of a catalogue only"
	engine      = "tutti identifies the engine: Elasticsearch 7.17 or later, or OpenSearch 2.7 or later"
)

// arranger is the table of Arranger 3, whose catalogue files tutti reads as they are.
func arranger() product {
	const sets = "tutti stores saved sets in its own database"
	return product{
		name:  arrangerName,
		marks: []string{"CONFIGS_PATH", "ES_HOST", "ES_ARRANGER_SETS_"},
		files: "JSON files, folders of catalogues or .env",
		read:  (*config.Foreign).Arranger,
		keys: []key{
			{name: "CONFIGS_PATH", to: "catalogues.dir"},
			{name: "CONFIG_PATH", to: "catalogues.dir", by: text},
			{name: "ES_HOST", to: "index.url", member: "esHost"},
			{name: "ES_USER", to: "index.username", member: "esUser"},
			{name: "ES_PASS", to: "index.password", member: "esPass", secret: true},
			{name: "DISABLE_GRAPHQL_INTROSPECTION", to: "catalogues.disableGraphQLIntrospection"},
			{name: "NODE_ENV", note: "production disables GraphQL introspection: set catalogues.disableGraphQLIntrospection, or keep NODE_ENV"},
			{name: "SERVER_PORT", to: "server.listen", by: port},
			{name: "ALLOWED_CORS_ORIGINS", to: "server.cors.origins", by: text},
			{name: "ENABLE_DEBUG", member: "enableDebug", to: "log.level", by: debug},
			{name: "ENABLE_LOGS", member: "enableLogs", note: "tutti logs always, at log.level"},

			{name: "ES_INDEX", member: "esIndex|index", note: inCatalogue, ask: "set esIndex in base.json"},
			{name: "DOCUMENT_TYPE", member: "documentType", note: inCatalogue, ask: "set documentType in base.json"},
			{name: "GRAPHQL_FIELD", member: "documentType", note: inCatalogue, ask: "set documentType in base.json"},
			{name: "DISABLE_DOWNLOADS", member: "disableDownloads", note: inCatalogue, ask: "set disableDownloads in base.json", standard: "false"},
			{name: "DISABLE_FILTERS", member: "disableFilters", note: inCatalogue, ask: "set disableFilters in base.json", standard: "false"},
			{name: "ENABLE_SETS", member: "enableSets", note: inCatalogue, ask: "set enableSets in base.json", standard: "false"},
			{name: "GRAPHQL_MAX_ALIASES", member: "maxAliases", note: inCatalogue, ask: "set maxAliases in base.json"},
			{name: "GRAPHQL_MAX_DEPTH", member: "maxDepth", note: inCatalogue, ask: "set maxDepth in base.json"},
			{name: "MAX_RESULTS_WINDOW", member: "table.maxResultsWindow", note: inCatalogue, ask: "set maxResultsWindow in table.json", standard: "10000"},
			{name: "ROW_ID_FIELD_NAME", member: "table.rowIdFieldName", note: inCatalogue, ask: "set rowIdFieldName in table.json", standard: "id"},
			{name: "ALLOW_CUSTOM_DOWNLOAD_MAX_ROWS", member: "downloads.allowCustomMaxRows", note: inCatalogue, standard: "false", ask: `set allowCustomMaxRows in downloads.json, {"downloads": {…}}`},
			{name: "DOWNLOAD_MAX_ROWS", member: "downloads.maxRows", note: inCatalogue, standard: "100", ask: `set maxRows in downloads.json, {"downloads": {…}}`},

			{name: "DOWNLOAD_STREAM_BUFFER_SIZE", member: "downloads.chunkSize"},
			{name: "ES_ARRANGER_SETS_INDEX", member: "sets.index", note: sets},
			{name: "ES_ARRANGER_SETS_TYPE", member: "sets.type", note: sets},
			{name: "SEARCH_ENGINE", member: "searchEngine", note: engine},
			{name: "ES_LOG"},
			{name: "DISABLE_GRAPHQL_PLAYGROUND", member: "disablePlayground"},
			{name: "ENABLE_GRAPHQL_BATCHING", member: "enableGraphQLBatching"},
			{name: "ENABLE_ADMIN", member: "enableAdmin"},
			{name: "MAX_LIVE_VERSIONS"},
			{name: "PING_MS", note: "tutti serves /ping and /ready"},
			{name: "PING_PATH", note: "tutti serves /ping"},
			{name: "READY_PATH", note: "tutti serves /ready"},
		},
	}
}
