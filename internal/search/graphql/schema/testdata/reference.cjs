// Reads what graphql-js is asked on the standard input, and answers on the standard output, both as JSON. Without an
// introspection: the query of introspection. With one: both schemas as graphql-js prints them, types and fields by name, and the
// faults of the first.
'use strict';

const graphql = require('graphql');

const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));
let answer;
if (!asked.introspection) {
	const everything = {
		descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true, inputValueDeprecation: true, oneOf: true,
	};
	answer = { version: graphql.version, query: graphql.getIntrospectionQuery(everything) };
} else {
	const built = graphql.buildSchema(asked.text);
	const client = graphql.buildClientSchema(asked.introspection);
	const print = (schema) => graphql.printSchema(graphql.lexicographicSortSchema(schema));
	answer = {
		text: print(built),
		introspection: print(client),
		faults: [...graphql.validateSchema(built), ...graphql.validateSchema(client)].map((fault) => fault.message),
		directives: client.getDirectives().map((directive) => `${directive.name} ${directive.locations.join(' ')}`),
	};
}
process.stdout.write(JSON.stringify(answer));
