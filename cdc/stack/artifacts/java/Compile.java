import java.io.File;
import org.codehaus.janino.Compiler;

/** Compiles source files: their paths, the directory for the classes, and the class path. */
public class Compile {
    public static void main(String[] arguments) throws Exception {
        Compiler compiler = new Compiler();
        compiler.setDestinationDirectory(new File(arguments[1]), false);
        compiler.setClassPath(files(arguments[2]));
        compiler.compile(files(arguments[0]));
    }

    private static File[] files(String path) {
        String[] names = path.split(File.pathSeparator);
        File[] files = new File[names.length];
        for (int i = 0; i < names.length; i++) {
            files[i] = new File(names[i]);
        }
        return files;
    }
}
