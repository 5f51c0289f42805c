-- Functions of the SQL that both engines share and PostgreSQL lacks. They are in the schema of the tables, which the
-- search path names.
-- The text of a value; true and false are 1 and 0, as they are stored, and null is NULL.
CREATE FUNCTION json_text(element json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN json_typeof(element) = 'boolean' THEN CASE element::text WHEN 'true' THEN '1' ELSE '0' END
        ELSE element #>> '{}' END
$$;
CREATE FUNCTION json_scalar_text(element json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN json_typeof(element) NOT IN ('array', 'object') THEN json_text(element) END
$$;

-- `value` of an element is its number, `atom` its text unless it is an array or object, `part` its JSON.
CREATE FUNCTION json_each(document text)
RETURNS TABLE (key text, value bigint, atom text, type text, part text)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS $$
    SELECT name, CASE WHEN element::text ~ '^-?\d{1,18}$' THEN element::text::bigint END,
        json_scalar_text(element), json_typeof(element), element::text
    FROM (
        SELECT (number - 1)::text, element
        FROM json_array_elements(CASE WHEN json_typeof(document::json) = 'array' THEN document::json ELSE '[]' END)
            WITH ORDINALITY AS listed (element, number)
        UNION ALL
        SELECT * FROM json_each(CASE WHEN json_typeof(document::json) = 'object' THEN document::json ELSE '{}' END)
    ) AS elements (name, element)
$$;

-- The steps of a path such as $.name, $.a.b, $.span[0] or $[0].model.
CREATE FUNCTION json_steps(path text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_to_array(ltrim(regexp_replace(substr(path, 2), '\[(\d+)\]', '.\1', 'g'), '.'), '.')
$$;

CREATE FUNCTION json_extract(document text, path text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT json_text(document::json #> json_steps(path)) $$;

CREATE FUNCTION json_member(document text, name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT json_text(CASE WHEN substr(name, 1, 1) = '$' THEN document::json #> json_steps(name)
        ELSE document::json -> name END)
$$;
CREATE OPERATOR ->> (leftarg = text, rightarg = text, function = json_member);

CREATE FUNCTION json_element(document text, number integer) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT json_text(document::json -> number) $$;
CREATE OPERATOR ->> (leftarg = text, rightarg = integer, function = json_element);

CREATE FUNCTION json_part(document text, name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT (document::json -> name)::text $$;
CREATE OPERATOR -> (leftarg = text, rightarg = text, function = json_part);

CREATE FUNCTION json_set(document text, path text, element json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT jsonb_set(document::jsonb, json_steps(path), element::jsonb)::text
$$;
CREATE FUNCTION json_remove(document text, path text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT (document::jsonb #- json_steps(path))::text $$;
-- Appends to an array.
CREATE FUNCTION json_insert(document text, path text, element json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT (document::jsonb || jsonb_build_array(element))::text $$;

CREATE FUNCTION instr(text, text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT strpos($1, $2) $$;

CREATE FUNCTION max(bigint, bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE greatest($1, $2) END $$;
CREATE FUNCTION min(bigint, bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE least($1, $2) END $$;

CREATE FUNCTION json_each(document text, path text)
RETURNS TABLE (key text, value bigint, atom text, type text, part text)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS $$ SELECT * FROM json_each(json_extract(document, path)) $$;

CREATE FUNCTION json_type(document text, path text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE json_typeof(document::json #> json_steps(path))
        WHEN 'string' THEN 'text' ELSE json_typeof(document::json #> json_steps(path)) END
$$;

CREATE FUNCTION json_valid(document text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT document IS JSON $$;

CREATE FUNCTION hex(bytea) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT upper(encode($1, 'hex')) $$;

CREATE FUNCTION as_json_text(bigint[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT coalesce(array_to_json($1)::text, '[]') $$;
CREATE AGGREGATE json_group_array(bigint) (sfunc = array_append, stype = bigint[], finalfunc = as_json_text);
CREATE FUNCTION as_json_text(text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT coalesce(array_to_json($1)::text, '[]') $$;
CREATE AGGREGATE json_group_array(text) (sfunc = array_append, stype = text[], finalfunc = as_json_text);

CREATE FUNCTION joined(text, text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT concat_ws(',', $1, $2) $$;
CREATE AGGREGATE group_concat(text) (sfunc = joined, stype = text);

-- Whether one string of bytes is in another.
CREATE FUNCTION instr(bytea, bytea) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT position($2 IN $1) $$;

CREATE FUNCTION iif(boolean, text, text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 THEN $2 ELSE $3 END $$;

-- As `souvenir.core.labels.place_digests`.
CREATE FUNCTION place_digests(source text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN source = '' THEN substr(sha256(''), 1, 8) WHEN '..' = ANY (segments) THEN ''::bytea ELSE (
        SELECT string_agg(substr(sha256(convert_to(array_to_string(segments[:last], '/'), 'UTF8')), 1, 8), ''::bytea
            ORDER BY last)
        FROM generate_series(1, array_length(segments, 1)) AS last
    ) END FROM (SELECT string_to_array(source, '/')) AS split (segments)
$$;

-- The year (%Y) or the month (%m) of a time in seconds.
CREATE FUNCTION strftime(form text, seconds bigint, unit text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT date_part(CASE form WHEN '%Y' THEN 'year' ELSE 'month' END, to_timestamp(seconds) AT TIME ZONE 'UTC')
$$;
