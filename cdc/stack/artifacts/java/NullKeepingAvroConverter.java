package wal2lake;

import io.apicurio.registry.utils.converter.AvroConverter;
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * The Avro converter of Apicurio, but NULL is NULL.
 *
 * Where a column has a default, Apicurio's writes the default in place of every NULL that an event
 * holds. Its switch for this is a field that no setting reaches; with it on, the value is taken as
 * it is. The schema, with the default in it, stays the same.
 */
public class NullKeepingAvroConverter extends AvroConverter {
    public void configure(Map settings, boolean isKey) {
        super.configure(settings, isKey);
        try {
            Field data = AvroConverter.class.getDeclaredField("avroData");
            data.setAccessible(true);
            Object translator = data.get(this);
            Field keepsNull = translator.getClass().getDeclaredField("ignoreDefaultForNullables");
            keepsNull.setAccessible(true);
            keepsNull.setBoolean(translator, true);
        } catch (ReflectiveOperationException changed) {
            // Better no event than a wrong one: another version of the converter needs another way.
            throw new ConnectException("this Avro converter would replace NULL by defaults", changed);
        }
    }
}
