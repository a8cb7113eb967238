// Package config owns the configuration: it decodes a YAML file and the environment into one validated Config, and reports all errors
// at once, each with its key's path (CONTRACT section 9). It opens only the files named in the
// configuration. Package setting reads the keys; those of a type of repository are in its package below internal/upstream,
// and package foreign copies the environments of other products.
//
// The environment of an existing Maestro, version 4 or 5, is read as well, so that a deployment can migrate unchanged. It is recognized
// by a MAESTRO_REPOSITORIES_… or MAESTRO_ELASTICSEARCH_… variable, and sets the keys that neither the file nor a TUTTI_ variable sets,
// with two exceptions: Maestro's repositories are used only when tutti's list is empty, since two lists cannot be merged by index; and
// the index credentials only when none are set, since half of each would be wrong. An empty variable counts as not set. Exclusion rules
// (MAESTRO_EXCLUSIONRULES_…, MAESTRO_EXCLUSION_RULES_…, EXCLUSIONRULES_BYID_…) are read in any case, for each list of each repository that
// is not set; a rule that tutti does not know prevents the start, because tutti would index what Maestro excludes. All other variables
// of Maestro that tutti does not support are listed in Config.Warnings.
//
//	Maestro 5                                     Maestro 4                                        tutti
//	MAESTRO_ELASTICSEARCH_NODES                   MAESTRO_ELASTICSEARCH_CLUSTERNODES[_<n>]         index.url
//	MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER   the same                                         index.username
//	MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD  the same                                      index.password
//	MAESTRO_REPOSITORIES_<i>_BASE_URL             MAESTRO_REPOSITORIES_<i>_URL                     repositories[i].url
//	…_CODE, …_NAME                                the same                                         code, name
//	…_TYPE                                        song                                             type
//	…_INDEX_NAME                                  MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_ALIAS  indexName
//	…_PAGINATION_SIZE                             MAESTRO_SONG_PAGELIMIT                           pageSize
//	…_SONG_ORGANIZATION, …_SONG_COUNTRY           …_ORGANIZATION, …_COUNTRY                        organization, country
//	…_SONG_INDEXABLE_STUDY_STATES                 MAESTRO_SONG_INDEXABLESTUDYSTATESCSV             song.states
//	…_LYRIC_CATEGORY_ID, …_LYRIC_VALID_DATA_ONLY                                                   lyric.categoryId, lyric.validOnly
//	MAESTRO_KAFKA_BROKERS                         SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS         …kafka.brokers
//	MAESTRO_KAFKA_GROUP_ID                        SPRING_CLOUD_STREAM_BINDINGS_[SONG]INPUT_GROUP   …kafka.group
//	…_KAFKA_DOCUMENT_UPDATE_TOPIC                 SPRING_CLOUD_STREAM_BINDINGS_SONGINPUT_DESTINATION  notifications.kafka.topic
//	MAESTRO_KAFKA_INDEX_REQUEST_TOPIC             SPRING_CLOUD_STREAM_BINDINGS_INPUT_DESTINATION   ingest.kafka.requestTopic
//	                                              MAESTRO_EXCLUSIONRULES_BYID_STUDYID[_<n>]        exclude.organizations
//	                                              …_ANALYSIS, …_FILE, …_DONOR, …_SPECIMEN, …_SAMPLE  exclude.analyses, files, …
//	MAESTRO_LOGGING_LEVEL                         MAESTRO_LOGGING_LEVEL_ROOT                       log.level
//
// The environment of an existing Arranger 3 is read too, for keys that neither the file, a TUTTI_ variable nor Maestro sets, in the same
// way: an empty variable counts as not set, and credentials are used completely or not at all. Its names are common, so
// Config.Warnings lists each key set from one. An ES_HOST without a scheme is http, and without a port its port is 9200. Arranger's other
// variables are listed in a warning, with the equivalent setting, when CONFIGS_PATH or ES_HOST is set.
//
//	Arranger 3                     tutti
//	CONFIGS_PATH                   catalogues.dir
//	ES_HOST                        index.url
//	ES_USER, ES_PASS               index.username, index.password
//	DISABLE_GRAPHQL_INTROSPECTION  catalogues.disableGraphQLIntrospection
//	NODE_ENV=production            Config.Catalogues.Production, which has no key
//
// The environment of a Song's authentication is read as well, when auth.mode is token or, if it is not set, SPRING_PROFILES_ACTIVE
// contains secure or jwt. tutti's address of a server replaces all of Song's for it, tutti's client both credentials. Song
// checks neither issuer nor audience, so auth.jwt.anyIssuer and anyAudience are true unless the issuer or audience is set. Plain http is
// permitted (auth.allowHttp) only when every such URL is Song's and names a host of a private network: a private address, a name without
// a dot, or one that ends in .internal, .local, .svc or .localhost.
//
//	Song                                                              tutti
//	SPRING_PROFILES_ACTIVE with secure, older jwt                     auth.mode: token
//	AUTH_SERVER_INTROSPECTIONURI, older AUTH_SERVER_URL               auth.introspection.url
//	AUTH_SERVER_CLIENTID, AUTH_SERVER_CLIENTSECRET                    auth.introspection.clientId, clientSecret
//	AUTH_SERVER_TOKENNAME, by default apiKey                          auth.introspection.tokenParameter
//	AUTH_SERVER_PROVIDER=keycloak, AUTH_SERVER_KEYCLOAK_HOST, _REALM  auth.uma.tokenUrl
//	AUTH_SERVER_CLIENTID                                              auth.uma.clientId
//	AUTH_SERVER_SCOPE_STUDY_PREFIX, _SUFFIX                           auth.organizationPrefix, writeSuffix
//	AUTH_SERVER_SCOPE_SYSTEM                                          auth.systemScope, without writeSuffix
//	SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_JWK_SET_URI             auth.jwt.jwksUrl
//	SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_PUBLIC_KEY_LOCATION     auth.jwt.jwksUrl or publicKeyFile
//	AUTH_JWT_PUBLIC_KEY_URL of older versions                         auth.jwt.jwksUrl
//
// OpenTelemetry's standard variables set keys that neither the file nor a TUTTI_ variable sets. Those for all signals apply where the one
// for traces is not set; an endpoint for gRPC, or that is not a URL, is not used, with a warning.
//
//	OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT  tracing.endpoint
//	OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS    tracing.headers
//	OTEL_SERVICE_NAME                                                tracing.serviceName
//	OTEL_SDK_DISABLED=true, OTEL_TRACES_EXPORTER=none                no endpoint from these variables
package config
