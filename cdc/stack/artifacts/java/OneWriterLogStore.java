package wal2lake;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log in an object store, of which one job is the only writer.
 *
 * An entry is a conditional put, so that no other process can replace it or be replaced. A put whose
 * answer was lost has won if its content is there, which no other writer has. One that has lost
 * fails the commit: Delta must not repeat it behind a commit that the job does not know. Nothing is
 * written once the job may have lost its lock of the lake.
 */
public class OneWriterLogStore extends S3SingleDriverLogStore {
    private static final int ATTEMPTS = 5;
    private static volatile boolean locked = false;
    private static volatile long until = 0;

    public OneWriterLogStore(Configuration configuration) {
        super(configuration);
    }

    /** Says that the job holds its lock of the lake for so many seconds from now. */
    public static void heldFor(double seconds) {
        until = System.nanoTime() + (long) (seconds * 1e9);
        locked = true;
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        refuseFenced(path);
        if (overwrite.booleanValue()) {
            super.write(path, actions, overwrite, configuration);
            return;
        }
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            lines.write(((String) actions.next()).getBytes("UTF-8"));
            lines.write('\n');
        }
        put(path, lines.toByteArray(), path.getFileSystem(configuration));
    }

    private static void put(Path path, byte[] content, FileSystem files) throws IOException {
        IOException last = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            refuseFenced(path);
            try {
                create(path, content, files);
                return;
            } catch (IOException refused) {
                last = refused;
            }
            byte[] found = read(path, files);
            if (found != null && Arrays.equals(found, content)) {
                return;
            }
            if (found != null) {
                throw new IOException(path + " is there already: another job has written it", last);
            }
        }
        throw last;
    }

    private static void create(Path path, byte[] content, FileSystem files) throws IOException {
        FSDataOutputStreamBuilder builder = files.createFile(path);
        builder.must("fs.option.create.conditional.overwrite", true);
        FSDataOutputStream stream = (FSDataOutputStream) builder.build();
        stream.write(content);
        stream.close();
    }

    private static byte[] read(Path path, FileSystem files) throws IOException {
        try {
            FSDataInputStream stream = files.open(path);
            try {
                ByteArrayOutputStream found = new ByteArrayOutputStream();
                byte[] piece = new byte[65536];
                for (int count = stream.read(piece); count >= 0; count = stream.read(piece)) {
                    found.write(piece, 0, count);
                }
                return found.toByteArray();
            } finally {
                stream.close();
            }
        } catch (FileNotFoundException absent) {
            return null;
        }
    }

    private static void refuseFenced(Path path) throws IOException {
        if (locked && System.nanoTime() - until >= 0) {
            throw new IOException("the lock of the lake was not renewed: " + path + " is not written");
        }
    }
}
