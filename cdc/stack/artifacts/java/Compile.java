import java.io.File;
import org.codehaus.janino.Compiler;

/** Compiles a source file: its path, the directory for the classes, and the class path. */
public class Compile {
    public static void main(String[] arguments) throws Exception {
        String[] jars = arguments[2].split(File.pathSeparator);
        File[] path = new File[jars.length];
        for (int i = 0; i < jars.length; i++) {
            path[i] = new File(jars[i]);
        }
        Compiler compiler = new Compiler();
        compiler.setDestinationDirectory(new File(arguments[1]), false);
        compiler.setClassPath(path);
        compiler.compile(new File[] {new File(arguments[0])});
    }
}
