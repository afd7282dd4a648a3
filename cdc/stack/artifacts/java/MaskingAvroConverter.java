package wal2lake;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Leaves out, hashes or truncates the columns that source.columns names, in rows and in keys.
 *
 * A mask is "drop", "truncate N" or "hash F", where F is the fingerprint of the salt. The first rule
 * whose expression matches schema.table.column applies. The lake computes the same in SQL
 * (cdc/source/rows/masking.py). A column that cannot be masked is left out, which stops its table.
 *
 * A renamed column would no longer match its rule. So no event is sent that lacks a masked column
 * and has an unknown one, until wal2lake has given the converter the names that there are now.
 */
public class MaskingAvroConverter extends NullKeepingAvroConverter {
    private static final String SETTING = "wal2lake.mask.";
    private static final String OWN = "wal2lake.";
    private static final String NAME = "__debezium.source.column.name";
    private static final int LARGEST_CACHE = 10000;

    private final List masks = new ArrayList();
    private final List expressions = new ArrayList();
    private final Map schemas = new IdentityHashMap();
    private final Map names = new HashMap();
    private final Map known = new HashMap();
    private String topics;
    private String placeholder;
    private byte[] salt;
    private MessageDigest digest;

    public void configure(Map settings, boolean isKey) {
        super.configure(settings, isKey);
        topics = (String) settings.get(SETTING + "topics");
        placeholder = (String) settings.get(SETTING + "placeholder");
        String columns = (String) settings.get(SETTING + "columns");
        if (topics == null || placeholder == null || columns == null) {
            throw new ConnectException(SETTING + "topics, placeholder and columns belong together");
        }
        String[] rules = columns.split("\n");
        for (int i = 0; i < rules.length; i++) {
            int end = rules[i].lastIndexOf(' ');
            masks.add(rules[i].substring(0, end));
            expressions.add(Pattern.compile(rules[i].substring(end + 1), Pattern.DOTALL));
        }
        takeKnown((String) settings.get(SETTING + "known"));
        takeSalt((String) settings.get(SETTING + "salt"), (String) settings.get(SETTING + "fingerprint"));
    }

    public byte[] fromConnectData(String topic, Schema schema, Object value) {
        Object kept = masked(topic, schema, value);
        return super.fromConnectData(topic, schemaOf(topic, schema), kept);
    }

    public byte[] fromConnectData(String topic, Headers headers, Schema schema, Object value) {
        Object kept = masked(topic, schema, value);
        return super.fromConnectData(topic, headers, schemaOf(topic, schema), kept);
    }

    private Object masked(String topic, Schema schema, Object value) {
        boolean isMasked = value instanceof Struct && isCaptured(topic, schema);
        return isMasked ? event(table(topic), (Struct) value, schemaOf(topic, schema)) : value;
    }

    private Schema schemaOf(String topic, Schema schema) {
        return isCaptured(topic, schema) ? event(table(topic), schema) : schema;
    }

    private boolean isCaptured(String topic, Schema schema) {
        boolean isStruct = schema != null && schema.type() == Schema.Type.STRUCT;
        return isStruct && topic.startsWith(topics) && !table(topic).startsWith(OWN);
    }

    private String table(String topic) {
        return topic.substring(topics.length());
    }

    /** Takes lines of a table, the number of its masked columns and the names of all, as in a URL. */
    private void takeKnown(String lines) {
        String[] tables = lines == null ? new String[0] : lines.split("\n");
        for (int i = 0; i < tables.length; i++) {
            String[] words = tables[i].split(" ");
            Set columns = new HashSet();
            for (int j = 2; j < words.length; j++) {
                columns.add(plain(words[j]));
            }
            known.put(plain(words[0]), new Known(Integer.parseInt(words[1]), columns));
        }
    }

    private static String plain(String word) {
        return URLDecoder.decode(word, StandardCharsets.UTF_8);
    }

    private void takeSalt(String given, String fingerprint) {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new ConnectException("this Java has no SHA-256", impossible);
        }
        if (fingerprint == null) {
            return;
        }
        salt = given == null ? new byte[0] : bytes(given);
        if (!hex(digest.digest(bytes("wal2lake.hash_salt " + given))).startsWith(fingerprint)) {
            throw new ConnectException("the worker resolves another salt than source.hash_salt");
        }
    }

    /** Returns the schema of events or keys with masked rows, made once for each schema. */
    private Schema event(String table, Schema schema) {
        Schema made = (Schema) schemas.get(schema);
        if (made != null) {
            return made;
        }
        if (schemas.size() >= LARGEST_CACHE) {
            schemas.clear();
            names.clear();
        }
        SchemaBuilder builder = like(SchemaBuilder.struct(), schema);
        for (int i = 0; i < schema.fields().size(); i++) {
            Field field = (Field) schema.fields().get(i);
            builder.field(field.name(), holdsRow(field) ? row(table, field.schema()) : field.schema());
        }
        made = builder.build();
        schemas.put(schema, made);
        return made;
    }

    private Schema row(String table, Schema schema) {
        refuseUnknown(table, schema);
        SchemaBuilder builder = like(SchemaBuilder.struct(), schema);
        for (int i = 0; i < schema.fields().size(); i++) {
            Field field = (Field) schema.fields().get(i);
            Schema kept = column(table, field);
            if (kept != null) {
                builder.field(field.name(), kept);
            }
        }
        return builder.build();
    }

    private void refuseUnknown(String table, Schema schema) {
        Known expected = (Known) known.get(table);
        String unknown = null;
        int masked = 0;
        for (int i = 0; i < schema.fields().size(); i++) {
            Field field = (Field) schema.fields().get(i);
            masked += mask(table, field) == null ? 0 : 1;
            if (expected != null && !expected.columns.contains(name(field))) {
                unknown = name(field);
            }
        }
        if (unknown != null && masked < expected.masked) {
            throw new UnknownColumn("a masked column of " + table + " is gone, and " + unknown
                + " is new. If it was renamed, add its new name to source.columns");
        }
    }

    private static SchemaBuilder like(SchemaBuilder builder, Schema schema) {
        builder.name(schema.name()).version(schema.version()).doc(schema.doc());
        if (schema.parameters() != null) {
            builder.parameters(schema.parameters());
        }
        return schema.isOptional() ? builder.optional() : builder;
    }

    /** Returns the schema of a column, with a masked default; null where it is left out. */
    private Schema column(String table, Field field) {
        Schema schema = field.schema();
        String mask = mask(table, field);
        if (mask == null) {
            return schema;
        }
        if (mask.equals("drop") || schema.type() != Schema.Type.STRING) {
            return null;
        }
        if (schema.defaultValue() == null) {
            return schema;
        }
        SchemaBuilder builder = like(SchemaBuilder.string(), schema);
        return builder.defaultValue(left(mask, (String) schema.defaultValue())).build();
    }

    private Struct event(String table, Struct event, Schema schema) {
        Struct made = new Struct(schema);
        for (int i = 0; i < schema.fields().size(); i++) {
            Field field = (Field) schema.fields().get(i);
            Object value = event.getWithoutDefault(field.name());
            if (value != null) {
                made.put(field, holdsRow(field) ? row(table, (Struct) value, field.schema()) : value);
            }
        }
        return made;
    }

    private Struct row(String table, Struct row, Schema schema) {
        Struct made = new Struct(schema);
        for (int i = 0; i < schema.fields().size(); i++) {
            Field field = (Field) schema.fields().get(i);
            Object value = row.getWithoutDefault(field.name());
            if (value != null) {
                String mask = placeholder.equals(value) ? null : mask(table, field);
                made.put(field, mask == null ? value : left(mask, (String) value));
            }
        }
        return made;
    }

    /** Whether the field of an event, or of the key that HoistField has wrapped, is a row. */
    private static boolean holdsRow(Field field) {
        String name = field.name();
        boolean isRow = name.equals("before") || name.equals("after") || name.equals("key");
        return isRow && field.schema().type() == Schema.Type.STRUCT;
    }

    private String mask(String table, Field field) {
        String name = table + "." + name(field);
        if (!names.containsKey(name)) {
            names.put(name, found(name));
        }
        return (String) names.get(name);
    }

    private static String name(Field field) {
        Map parameters = field.schema().parameters();
        String real = parameters == null ? null : (String) parameters.get(NAME);
        return real == null ? field.name() : real;
    }

    private String found(String name) {
        for (int i = 0; i < masks.size(); i++) {
            if (((Pattern) expressions.get(i)).matcher(name).matches()) {
                return (String) masks.get(i);
            }
        }
        return null;
    }

    private String left(String mask, String value) {
        if (mask.startsWith("hash ")) {
            digest.reset();
            digest.update(salt);
            return hex(digest.digest(bytes(value)));
        }
        int most = Integer.parseInt(mask.substring("truncate ".length()));
        boolean isLonger = value.codePointCount(0, value.length()) > most;
        return isLonger ? value.substring(0, value.offsetByCodePoints(0, most)) : value;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < bytes.length; i++) {
            text.append(Character.forDigit(bytes[i] >> 4 & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
        }
        return text.toString();
    }

    /** What the source's catalogue has of a table. */
    private static class Known {
        private final int masked;
        private final Set columns;

        Known(int masked, Set columns) {
            this.masked = masked;
            this.columns = columns;
        }
    }

    /** Its message names a table and columns, and no value. */
    public static class UnknownColumn extends ConnectException {
        public UnknownColumn(String message) {
            super(message);
        }
    }
}
