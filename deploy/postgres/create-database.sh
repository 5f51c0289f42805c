#!/bin/sh
# Creates the role and the database of the service. The image of PostgreSQL runs this once, for an empty data folder.
# The role is no superuser, owns nothing but its database, and nobody else may connect to that.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv password DATABASE_PASSWORD
CREATE ROLE souvenir LOGIN PASSWORD :'password';
CREATE DATABASE souvenir OWNER souvenir ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE souvenir FROM PUBLIC;
SQL
