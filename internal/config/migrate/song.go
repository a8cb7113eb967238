package migrate

import "tutti/internal/config"

// song is the table of Song 5 and the versions before it that name AUTH_SERVER_URL.
func song() product {
	const (
		data    = "tutti has its own database; tutti migrate song copies the data"
		changes = "the built-in repository reports its changes to the index itself, and publishes none"
		ids     = "tutti makes ids itself, as Song does with useLocal"
		score   = "tutti asks Score whether files were uploaded when schemas.storage.url and token are set"
	)
	return product{
		name:  "Song",
		marks: []string{"AUTH_SERVER_", "SPRING_DATASOURCE_", "SCORE_URL", "SONG_ID"},
		files: "application.yml, application.properties or .env",
		read:  (*config.Foreign).Song,
		keys: []key{
			{name: "SPRING_PROFILES_ACTIVE", to: "auth.mode", note: "without secure Song requires no tokens"},
			{name: "SPRING_PROFILES_DEFAULT"},
			{name: "AUTH_SERVER_PROVIDER", to: "auth.uma.tokenUrl", note: "keycloak decides that auth.uma is set"},
			{name: "AUTH_SERVER_INTROSPECTION_URI", to: "auth.introspection.url"},
			{name: "AUTH_SERVER_URL", to: "auth.introspection.url"},
			{name: "AUTH_SERVER_TOKEN_NAME", to: "auth.introspection.tokenParameter"},
			{name: "AUTH_SERVER_CLIENT_ID", to: "auth.introspection.clientId"},
			{name: "AUTH_SERVER_CLIENT_SECRET", to: "auth.introspection.clientSecret", secret: true},
			{name: "AUTH_SERVER_KEYCLOAK_HOST", to: "auth.uma.tokenUrl"},
			{name: "AUTH_SERVER_KEYCLOAK_REALM", to: "auth.uma.tokenUrl", note: "part of auth.uma.tokenUrl"},
			{name: "AUTH_SERVER_SCOPE_STUDY_PREFIX", to: "auth.organizationPrefix"},
			{name: "AUTH_SERVER_SCOPE_STUDY_SUFFIX", to: "auth.writeSuffix"},
			{name: "AUTH_SERVER_SCOPE_SYSTEM", to: "auth.systemScope"},
			{name: "AUTH_SERVER_ENABLE_STRICT_SSL", note: "certificates are always verified"},
			{name: "AUTH_SERVER_ENABLE_HTTP_LOGGING"},
			{name: "SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_JWK_SET_URI", to: "auth.jwt.jwksUrl"},
			{name: "SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_PUBLIC_KEY_LOCATION", to: "auth.jwt.jwksUrl"},
			{name: "AUTH_CONNECTION_*", note: "a server that does not answer makes requests fail with 503"},
			{name: "AUTH_JWT_PUBLIC_KEY_URL", to: "auth.jwt.jwksUrl"},
			{name: "AUTH_JWT_*", note: "a key of Score"},

			{name: "SONG_ID", to: "repositories[0].code", by: songID, note: "the code of a repository"},
			{name: "SERVER_PORT", to: "server.listen", by: port},
			{name: "SERVER_SSL_*", note: "server.tls.certFile and keyFile name PEM files"},
			{name: "SERVER_*"},
			{name: "SCHEMAS_ENFORCE_LATEST", to: "schemas.enforceLatest", by: text},
			{name: "LOGGING_LEVEL_ROOT", to: "log.level", by: level},
			{name: "LOGGING_*", note: "log.level applies to the whole process"},

			{name: "SPRING_DATASOURCE_PASSWORD", note: data, secret: true},
			{name: "SPRING_DATASOURCE_*", note: data},
			{name: "SPRING_FLYWAY_*", note: data},
			{name: "SPRING_JPA_*", note: data},
			{name: "SPRING_KAFKA_*", note: changes},
			{name: "SCORE_ACCESS_TOKEN", note: score, secret: true},
			{name: "SCORE_CLIENT_CREDENTIALS_SECRET", note: score, secret: true},
			{name: "SCORE_*", note: score},
			{name: "ID_USE_LOCAL", note: ids, standard: "true", ask: "ids of a federated service are not supported; " + ids},
			{name: "ID_FEDERATED_AUTH_*", note: ids, secret: true},
			{name: "ID_*", note: ids},
			{name: "VALIDATION_*", note: "tutti validates a submission before it answers"},
			{name: "MANAGEMENT_*", note: "tutti serves /ready and /metrics"},
			{name: "SWAGGER_*", note: "tutti serves /openapi.json"},
			{name: "SPRINGDOC_*", note: "tutti serves /openapi.json"},
			{name: "SECURITY_BASIC_ENABLED"},
			{name: "SPRING_*"},
		},
	}
}
